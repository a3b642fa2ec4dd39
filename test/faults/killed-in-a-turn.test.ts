/** kill -9 of the leader at each step of its turn: before Redis has it, when it is done and unheard, when it is heard. */
import { expect, test, vi } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { MOVED } from '../support/fault-policies.js';
import type { LimiterRecord } from '../support/fault-record.js';
import { alive, type Member, machinePace, type Rig, startRig } from '../support/fault-rig.js';
import { killAt, MOMENTS, STEPS, type TurnStep } from '../support/fault-steps.js';
import { check } from './checker.js';
import { nowMs, pause, recordRun } from './play.js';

// Eighteen leaders die, and each must be followed by another.
vi.setConfig({ testTimeout: 400_000 });
const WITHIN_MS = 60_000;

async function leaderOf(rig: Rig): Promise<Member> {
  const giveUpAt = nowMs() + WITHIN_MS;
  for (;;) {
    const lease = await rig
      .redis()
      .get(limiterKeys({ name: MOVED }).lease)
      .catch(() => null);
    const pid = lease?.split(':')[1];
    const found = rig.daemons.find((each) => alive(each) && String(each.child!.pid) === pid);
    if (found) return found;
    if (nowMs() > giveUpAt) throw new Error(`nobody leads ${MOVED}: ${lease}`);
    await pause(20);
  }
}

test('I1–I13 hold when the leader is killed at each step of its turn, at each moment of it; another leads each time', async () => {
  const pace = await machinePace();
  const rig = await startRig({
    ...{ redis: 'kept', daemons: 2, services: 2, differ: false, perSecond: 60, pace },
    ...{ law: 'aimd', second: 'recommend', draw: 'each', onRedisError: 'local' },
  });
  const killed: string[] = [];
  // The law has something to write all the time: the upstream goes from quick to slow and back.
  let slow = false;
  const moving = setInterval(() => {
    slow = !slow;
    rig.work({ latencyMs: slow ? 300 : 15 });
  }, 1_500);
  try {
    const { record, failures } = await recordRun(rig, async (faults, [moved]) => {
      for (const step of Object.keys(STEPS) as TurnStep[]) {
        for (const moment of MOMENTS) {
          const leader = await leaderOf(rig);
          const span = { name: `killed: ${step} ${moment}`, fromMs: nowMs(), loses: false };
          expect(await killAt(leader, step, moment, WITHIN_MS), span.name).toBe(true);
          killed.push(span.name);
          await leaderOf(rig);
          rig.startDaemon(leader);
          faults.push({ ...span, toMs: nowMs() });
        }
      }
      rig.work({ latencyMs: 15 });
      clearInterval(moving);
      await settled(rig, moved!);
    });
    const report = await check(record);
    expect([...failures, ...report.violations]).toEqual([]);
    expect(killed).toHaveLength(Object.keys(STEPS).length * MOMENTS.length);
    for (const name of ['I1', 'I2', 'I3', 'I5', 'I13'] as const) {
      expect(report.checks[name].checked, name).toBeGreaterThan(0);
    }
  } finally {
    clearInterval(moving);
    await rig.close();
  }
});

/** What died last has come back, and the law has written since. */
async function settled(rig: Rig, { segments }: LimiterRecord): Promise<void> {
  const count = () => segments.at(-1)?.entries.length ?? 0;
  const before = count();
  const giveUpAt = nowMs() + WITHIN_MS;
  while (!rig.daemons.every(alive) || count() <= before) {
    if (nowMs() > giveUpAt) throw new Error('no entry since the last kill');
    await pause(100);
  }
}
