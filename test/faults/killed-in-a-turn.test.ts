/** kill -9 of the leader at each step of its turn: before Redis has it, and when it is done and unheard. */
import { expect, test, vi } from 'vitest';
import { ranked } from '../../src/daemon/rendezvous.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { MOVED } from '../support/fault-policies.js';
import type { LimiterRecord } from '../support/fault-record.js';
import { alive, gone, type Member, machinePace, type Rig, startRig } from '../support/fault-rig.js';
import { killAt, MOMENTS, type Moment, STEPS, type TurnStep } from '../support/fault-steps.js';
import { until } from '../support/sdk-params.js';
import { check } from './checker.js';
import { nowMs, recordRun } from './play.js';

// Twelve leaders die, and each must be followed by another.
vi.setConfig({ testTimeout: 600_000 });
const WITHIN_MS = 60_000;

async function leaderOf(rig: Rig): Promise<Member> {
  let found: Member | undefined;
  await until(
    `somebody leads ${MOVED}`,
    async () => {
      const lease = await rig
        .redis()
        .get(limiterKeys({ name: MOVED }).lease)
        .catch(() => null);
      const pid = lease?.split(':')[1];
      found = rig.daemons.find((each) => alive(each) && String(each.child!.pid) === pid);
      return found !== undefined;
    },
    WITHIN_MS,
  );
  return found!;
}

test('I1–I13 hold when the leader is killed at each step of its turn, at each moment of it; another leads each time', async () => {
  const pace = await machinePace();
  const rig = await startRig({
    ...{ redis: 'kept', daemons: 3, services: 2, differ: false, perSecond: 60, pace },
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
          const span = { name: `killed: ${step} ${moment}`, fromMs: nowMs(), loses: false };
          await until(span.name, () => dies(rig, step, moment), WITHIN_MS);
          killed.push(span.name);
          faults.push({ ...span, toMs: nowMs() });
        }
      }
      await settled(rig, moved!);
      clearInterval(moving);
      rig.work({ latencyMs: 15 });
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

/** Kills one at that moment, and starts what died again once another leads; false: somebody else did that step. */
async function dies(rig: Rig, step: TurnStep, moment: Moment): Promise<boolean> {
  await until('all daemons live', () => rig.daemons.every(alive), WITHIN_MS);
  const leader = await leaderOf(rig);
  const who = step === 'lease' ? await successor(rig, leader) : leader;
  const died = await killAt(who, step, moment, WITHIN_MS / 3);
  if (who !== leader) rig.startDaemon(leader);
  await leaderOf(rig);
  if (died) rig.startDaemon(who);
  return died;
}

/** Leases are taken by who comes next: the leader dies, and the other has not taken its lease yet. */
async function successor(rig: Rig, leader: Member): Promise<Member> {
  const owners = await rig.redis().hkeys(fleetKeys().daemons);
  const order = ranked(MOVED, owners).map((owner) => owner.split(':')[1]);
  const next = rig.daemons
    .filter((each) => each !== leader)
    .sort((a, b) => placeOf(order, a) - placeOf(order, b))[0]!;
  leader.child?.kill('SIGKILL');
  await gone(leader.child!);
  return next;
}

/** Who has not told of itself yet comes last. */
function placeOf(order: readonly (string | undefined)[], { child }: Member): number {
  const at = order.indexOf(String(child?.pid));
  return at < 0 ? order.length : at;
}

/** What died last has come back, and the law has written since. */
async function settled(rig: Rig, { segments }: LimiterRecord): Promise<void> {
  const count = () => segments.at(-1)?.entries.length ?? 0;
  const before = count();
  await until(
    'an entry since the last kill',
    () => rig.daemons.every(alive) && count() > before,
    WITHIN_MS,
  );
}
