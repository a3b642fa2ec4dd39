/** I13: what a live daemon decided is decided again from what it stored, entry by entry and tick by tick. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readEntries, type StoredEntry, verifyAudit } from '../../src/actuate/audit.js';
import { canonicalJson } from '../../src/actuate/entry.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { createDecideState } from '../../src/decide/state.js';
import type { DecideState } from '../../src/decide/types.js';
import { turn } from '../../src/guard/turn.js';
import { type Policy, policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { LimiterStatus } from '../../src/report/status.js';
import { type DaemonSetup, daemonSetup, policyText, until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { imports, read, sources } from '../support/source-tree.js';

const SERVICE = fileURLToPath(new URL('../support/changing-load.mjs', import.meta.url));
const address = { name: 'checkout' };
const keys = limiterKeys(address);
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const POLICY = policyText(`
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    errors: { source: 'telemetry', stat: 'errorRatio' },
  },
  objective: { p95: { below: '150ms' } },
  control: { law: 'adaptive' },
  breaker: { on: 'errors', above: '60%', per: '1s', openFor: '1s', openForMax: '2s', probeRate: 10 },
`);

/** Everything that the daemon wrote of one run. */
interface Tape {
  policy: Policy;
  /** Oldest first. */
  entries: StoredEntry[];
  /** One for each tick in which it decided, with the sample; none is missed. */
  ticks: LimiterStatus[];
}

let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;
let service: ChildProcess | null = null;
let tape: Tape;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  setup = daemonSetup(server.url);
  setup.write('checkout.ts', POLICY);
  tape = await liveRun();
});
afterAll(async () => {
  if (service !== null && service.exitCode === null) {
    const gone = once(service, 'exit');
    service.kill('SIGKILL');
    await gone;
  }
  await setup.close();
  await server.stop();
});

/** Calm, three times what it carries, broken, well again: each until the autopilot has answered. */
async function liveRun(): Promise<Tape> {
  const monitor = await server.client().monitor();
  const ticks: LimiterStatus[] = [];
  monitor.on('monitor', (_time: string, [command, key, value]: string[]) => {
    if (command?.toLowerCase() !== 'set' || key !== keys.status) return;
    ticks.push(JSON.parse(unescaped(value!)));
  });
  const daemon = setup.start({ FLYBALL_TICK_MS: '250', FLYBALL_LEASE_MS: '3000' });
  await daemon.line('lease_taken');
  service = fork(SERVICE, [server.url, address.name]);
  const load = (arrivals: number, failing = false) => service!.send({ arrivals, failing });
  const changed = (reason: string) =>
    daemon.line('change', (line) => line.reason === reason && line.limiter === address.name);

  load(40);
  await until('a signal', () => ticks.some(({ sample }) => sample.signals.p95?.fresh));
  load(300);
  await changed('law_cut');
  load(60, true);
  await changed('breaker_trip');
  load(60);
  await changed('breaker_recovering');
  load(300);
  const before = ticks.length;
  await until('some ticks more', () => ticks.length > before + 12);
  load(0);
  daemon.signal('SIGTERM');
  await daemon.exited;

  const { entries } = await readEntries(redis, address, { limit: 10_000 });
  await until('the last tick on tape', async () => {
    const last = JSON.parse((await redis.get(keys.status)) ?? '{}');
    return ticks.at(-1)?.atMs === last.atMs;
  });
  monitor.disconnect();
  const text = await redis.get(keys.policyVersion(ticks[0]!.policyHash));
  return { policy: policySchema.parse(JSON.parse(text!)), entries: entries.reverse(), ticks };
}

/** MONITOR shows bytes beyond ASCII as `\\xe2`. */
function unescaped(text: string): string {
  return text.replace(/(?:\\x[0-9a-f]{2})+/g, (bytes) =>
    Buffer.from(bytes.replaceAll('\\x', ''), 'hex').toString('utf8'),
  );
}

const decided = ({ body }: StoredEntry) => body.law !== undefined;
const plain = (value: unknown) => JSON.parse(canonicalJson(value));

describe('I13: a live audit log, replayed', () => {
  test('the run has cuts, a trip, probes and a recovery, in an unbroken chain', async () => {
    const reasons = tape.entries.filter(decided).map(({ body }) => body.reason);
    expect(reasons).toEqual(
      expect.arrayContaining(['law_cut', 'breaker_trip', 'breaker_recovering']),
    );
    expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
  });

  test('each change of law and breaker is recomputed by explain to the same decision', async () => {
    const changes = tape.entries.filter((entry) => entry.kind === 'change' && decided(entry));
    expect(changes.length).toBeGreaterThanOrEqual(3);
    for (const entry of changes) {
      const { verdict, sentence, decision } = await explainEntry(redis, address, entry);
      expect(verdict, sentence).toBe('agrees');
      // Beyond what `explain` compares: the words, the terms and each guard's verdict.
      const { body } = entry;
      expect(plain(decision)).toMatchObject({
        change: true,
        sentence: body.sentence,
        terms: body.terms,
        verdicts: body.verdicts,
      });
      const { over, heldBack } = decision!;
      expect(plain(body.detail ?? {})).toEqual(plain({ over, heldBack }));
      if (body.reason !== 'law_cut') continue;
      expect(body.sentence).toContain(
        `${over!.signal} ${over!.value} is ${over!.ratio} × the ${over!.setpoint} setpoint`,
      );
    }
  });

  test('an entry that was tampered with is not', async () => {
    const entry = tape.entries.find(({ body }) => body.reason === 'law_cut')!;
    const { after } = entry.body;
    const forged = { ...entry.body, after: { ...after!, rate: after!.rate + 1 } };
    const found = await explainEntry(redis, address, { ...entry, body: forged });
    expect(found.verdict).toBe('differs');
  });

  test('from the first sample on, turn after turn, one state, each tick decides as it did', () => {
    const { policy, ticks } = tape;
    expect(ticks.length).toBeGreaterThan(20);
    let state: DecideState = createDecideState(policy);
    let changes = 0;
    for (const [at, tick] of ticks.entries()) {
      const entry = tape.entries.find(
        ({ body }) => body.sample !== undefined && body.sample.nowMs === tick.sample.nowMs,
      );
      if (entry)
        expect(plain(state), `state before ${tick.sample.nowMs}`).toEqual(entry.body.stateBefore);
      const next = turn(policy, state, tick.sample);
      const { decision } = next;
      expect(plain(told(decision)), `tick ${at}: ${tick.decision.sentence}`).toEqual(
        plain(tick.decision),
      );
      // What Redis refused has not happened: the law goes on from where it was.
      const refused = decision.change && entry === undefined;
      if (!refused) state = next.state;
      if (decision.change && !refused) changes += 1;
    }
    const written = tape.entries.filter((entry) => entry.kind === 'change' && decided(entry));
    expect(changes).toBe(written.length);
  });
});

/** What the status tells of a decision. */
function told(decision: ReturnType<typeof turn>['decision']) {
  const { change, reason, sentence, state, rate, capacity, inFlightMax, verdicts, terms } =
    decision;
  return {
    ...{ change, reason, sentence, state, rate, capacity, inFlightMax, verdicts, terms },
    heldBack: decision.heldBack,
  };
}

describe('I13: one turn', () => {
  const TURN = 'src/guard/turn.ts';
  const takes = (path: string, name: string, from: string) =>
    imports.some((one) => one.from === path && one.to === from && one.names.includes(name));

  test('daemon, explain and simulator import the same function', () => {
    for (const path of [
      'src/daemon/fleet-budget.ts',
      'src/actuate/explain.ts',
      'src/sim/controllers.ts',
    ]) {
      expect(takes(path, 'turn', TURN), path).toBe(true);
    }
    expect(takes('src/testing.ts', 'turn', TURN)).toBe(true);
  });

  test('the backtest plays through the simulator’s controller', () => {
    expect(takes('src/cli/backtest.ts', 'replay', 'src/sim/replay.ts')).toBe(true);
    const controllers = 'src/sim/controllers.ts';
    for (const path of ['src/sim/replay.ts', 'src/sim/replay-closed.ts']) {
      expect(takes(path, 'byPolicy', controllers), path).toBe(true);
    }
  });

  test('the lab adapter takes it from the public surface, and decides nothing itself', () => {
    const adapter = read('bench/lab-adapter.mjs');
    const [, names] = /import \{([^}]*)\} from '\.\.\/dist\/testing\.js'/.exec(adapter)!;
    expect(names!.split(',').map((name) => name.trim())).toContain('turn');
    expect(adapter.match(/\bturn\(/g)).toHaveLength(1);
    const rateOnly = read('bench/lab-adapter-rate-only.mjs');
    expect(rateOnly).toContain("from './lab-adapter.mjs'");
    for (const text of [adapter, rateOnly]) expect(text).not.toMatch(/\b(step|guard)\(/);
  });

  test('nobody else calls the law or the guards by themselves', () => {
    const apart = imports.filter(
      ({ to, names, typeOnly }) =>
        !typeOnly &&
        ((to === 'src/decide/step.ts' && names.includes('step')) ||
          (to === 'src/guard/guard.ts' && names.includes('guard'))),
    );
    expect([...new Set(apart.map(({ from }) => from))].sort()).toEqual([TURN, 'src/testing.ts']);
    const defines = sources.filter(({ text }) => /export function turn\(/.test(text));
    expect(defines.map(({ path }) => path)).toEqual([TURN]);
  });
});
