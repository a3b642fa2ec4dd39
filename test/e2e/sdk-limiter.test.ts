import { expect, test } from 'vitest';
import {
  FlyballDeniedError,
  FlyballTypeError,
  type Limiter,
  type LimiterOptions,
  type LimiterWarning,
  VERSION,
} from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { take } from '../../src/redis/scripts.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('sdk');
const warnings: LimiterWarning[] = [];

const limiter = (options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ onWarning: (warning) => warnings.push(warning), ...options });

const address = (made: Limiter) => ({ name: made.name });

test('takes by the numbers in force, denies with the limit, the time and the revision', async () => {
  const api = limiter({ rate: 1, capacity: 1 });
  const { epoch, revision } = await setParams(bench.admin, address(api), {
    rate: 0.01,
    capacity: 3,
  });
  const decisions = await Promise.all([1, 2, 3, 4].map(() => api.take()));
  expect(decisions.map((decision) => decision.allowed)).toEqual([true, true, true, false]);
  expect(decisions[0]).toMatchObject({ reason: 'ok', limit: null, remaining: 2, source: 'redis' });
  expect(decisions[3]).toMatchObject({ reason: 'rate', limit: 'rate', epoch, revision });
  expect(decisions[3]!.retryAfterMs).toBeGreaterThan(90_000);
  expect(decisions[3]!.retryAfterMs).toBeLessThanOrEqual(100_000);
});

test('the takes of one turn go in a few calls, in order of arrival: two halves first, then 512 at most', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { rate: 0.01, capacity: 700 });
  await api.take();
  const before = api.stats().calls;
  const decisions = await Promise.all(Array.from({ length: 1000 }, () => api.take()));
  expect(api.stats().calls - before).toBe(3);
  const denied = decisions.map((decision) => decision.allowed).indexOf(false);
  expect(denied).toBe(699);
  expect(decisions.slice(699).every((decision) => !decision.allowed)).toBe(true);
});

test('a subject has its own bucket; a take denied by it leaves the total alone', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), {
    rate: 0.01,
    capacity: 10,
    subjectRate: 0.01,
    subjectCapacity: 2,
  });
  const ada = await Promise.all([1, 2, 3].map(() => api.take('ada')));
  expect(ada.map(({ reason }) => reason)).toEqual(['ok', 'ok', 'subject']);
  expect(ada[2]!.limit).toBe('subject');
  expect((await api.peek()).remaining).toBe(8);
  expect((await api.take('bob')).allowed).toBe(true);
});

test('C17: a cost above the capacity is denied without a retry time, also after the capacity fell', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { rate: 1, capacity: 8 });
  expect((await api.take(null, { cost: 6 })).allowed).toBe(true);
  await setParams(bench.admin, address(api), { capacity: 5 });
  for (let i = 0; i < 2; i++) {
    const denied = await api.take(null, { cost: 6 });
    expect(denied).toMatchObject({
      allowed: false,
      reason: 'cost_exceeds_capacity',
      limit: 'cost',
      retryAfterMs: null,
    });
  }
  expect(api.stats().denied.cost_exceeds_capacity).toBe(2);
  expect(warnings.filter(({ code }) => code === 'FLYBALL_W_COST_EXCEEDS_CAPACITY').length).toBe(1);
});

test('C18: a bad cost, subject or priority rejects with a TypeError and writes nothing', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { subjectRate: 5, subjectCapacity: 5 });
  await api.peek();
  const keysBefore = (await bench.admin.keys(`*${api.name}*`)).sort();
  const costs = [Number.NaN, Infinity, -5, -0, '5', ' 5 ', '0x10', Number('1e309'), null, 0];
  for (const cost of costs) {
    await expect(api.take('ada', { cost: cost as number })).rejects.toThrow(FlyballTypeError);
  }
  await expect(api.take('')).rejects.toThrow(TypeError);
  await expect(api.take('\ud800')).rejects.toThrow(TypeError);
  await expect(api.take('ada', { priority: 'high' as never })).rejects.toThrow(TypeError);
  await expect(api.take('ada', { onRedisError: 'fail' as never })).rejects.toThrow(TypeError);
  expect((await bench.admin.keys(`*${api.name}*`)).sort()).toEqual(keysBefore);
  expect(api.stats().admitted).toBe(0);

  expect((await api.take('ada', { cost: 1.5 })).allowed).toBe(true);
  expect((await api.peek('ada')).remaining).toBe(3);
});

test('C33: any subject is its own bucket, on one slot, in a short key', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { subjectRate: 0.01, subjectCapacity: 1 });
  const subjects = [
    '{',
    '}',
    '{}',
    '{{a}}',
    'a}b{c}',
    'a:b',
    'a',
    '\u00c9',
    'E\u0301',
    '\n',
    ' ',
    '__proto__',
    'x'.repeat(10_240),
    `${'x'.repeat(10_239)}y`,
  ];
  const first = await Promise.all(subjects.map((subject) => api.take(subject)));
  expect(first.every((decision) => decision.allowed)).toBe(true);
  const second = await Promise.all(subjects.map((subject) => api.take(subject)));
  expect(second.every((decision) => decision.reason === 'subject')).toBe(true);

  const keys = (await bench.admin.keys('*')).filter((key) =>
    key.startsWith(`flyball:{${api.name}}:b:`),
  );
  expect(keys.length).toBe(subjects.length);
  // No brace beside the limiter's own: the hash tag, and so the slot, is the same for all.
  for (const key of keys) expect(key.slice(`flyball:{${api.name}}`.length)).not.toMatch(/[{}]/);
  for (const key of keys) expect(Buffer.byteLength(key)).toBeLessThanOrEqual(200);
});

test('C07: an open breaker denies all with its reason, and closing gives no saved-up burst', async () => {
  const api = limiter({ denyCache: false });
  await setParams(bench.admin, address(api), { rate: 0.01, capacity: 20 });
  await Promise.all(Array.from({ length: 20 }, () => api.take()));
  const openUntil = Date.now() + 3_600_000;
  await setParams(
    bench.admin,
    address(api),
    { state: 'open', openUntil, openForMs: 3_600_000, generation: 1 },
    'breaker',
  );
  const denied = await Promise.all([1, 2, 3].map(() => api.take()));
  for (const decision of denied) {
    expect(decision).toMatchObject({
      allowed: false,
      reason: 'breaker_open',
      limit: 'breaker',
      state: 'open',
      generation: 1,
    });
    expect(decision.retryAfterMs).toBeGreaterThan(3_500_000);
  }
  await setParams(bench.admin, address(api), { state: 'closed', openUntil: 0 }, 'breaker');
  const after = await Promise.all([1, 2, 3].map(() => api.take()));
  expect(after.filter((decision) => decision.allowed).length).toBe(0);
  expect(after[0]!.reason).toBe('rate');
});

test('a client that pipelines by itself heals too when scripts are gone, also for subjects beyond ASCII', async () => {
  const redis = bench.server.client({ enableAutoPipelining: true });
  const api = limiter({ redis });
  await setParams(bench.admin, address(api), { rate: 1000, capacity: 1000 });
  for (const subject of ['user', 'Ünïcode']) {
    await bench.admin.script('FLUSH', 'SYNC');
    const all = Array.from({ length: 9 }, (_, i) => api.take(`${subject}:${i}`));
    expect((await Promise.all(all)).map(({ source }) => source)).toEqual(Array(9).fill('redis'));
  }
  await api.close();
  redis.disconnect();
});

test('C48: alone, waiting exactly the retry time is always enough (10000 phases)', async () => {
  const client = bench.server.client({ enableAutoPipelining: true });
  const startUs = Date.now() * 1000 + 10_000_000;
  async function phases(chain: number): Promise<number> {
    const place = { name: `sdk-phases-${chain}` };
    await setParams(bench.admin, place, { rate: 7.3 + chain / 7, capacity: 5 });
    const ask = async (nowUs: number) => {
      const reply = await take(client, {
        keys: limiterKeys(place),
        takes: [{ subject: null, cost: 1, priority: 'default' }],
        chargeByUs: 'any',
        fallback: { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 },
        shadow: false,
        nowUs,
      });
      return reply.answers[0]!;
    };
    let nowUs = startUs;
    let denials = 0;
    for (let phase = 0; phase < 200; phase++) {
      nowUs += ((phase + chain) * 7919) % 90_001;
      const answer = await ask(nowUs);
      if (answer.allowed) continue;
      denials += 1;
      expect(answer.retryAfterMs).toBeGreaterThanOrEqual(1);
      nowUs += answer.retryAfterMs! * 1000;
      expect((await ask(nowUs)).allowed).toBe(true);
    }
    return denials;
  }
  const denials = await Promise.all(Array.from({ length: 50 }, (_, chain) => phases(chain)));
  expect(denials.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(1000);
});

test('mode off admits all and writes nothing', async () => {
  const api = limiter({ rate: 1, capacity: 1 });
  await setParams(bench.admin, address(api), { mode: 'off', rate: 0.01, capacity: 1 });
  const decisions = await Promise.all([1, 2, 3].map(() => api.take('ada')));
  for (const decision of decisions)
    expect(decision).toMatchObject({ allowed: true, reason: 'off' });
  expect(await bench.admin.exists(limiterKeys(address(api)).bucket)).toBe(0);
});

test('mode shadow admits all, counts what it would have denied, and uses keys of its own', async () => {
  const api = limiter();
  const keys = limiterKeys(address(api));
  await setParams(bench.admin, address(api), { mode: 'shadow', rate: 0.01, capacity: 2 });
  const decisions = await Promise.all([1, 2, 3].map(() => api.take()));
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
  expect(decisions.map(({ wouldAllow }) => wouldAllow)).toEqual([true, true, false]);
  expect(api.stats()).toMatchObject({ admitted: 3, denied: {}, wouldDeny: { rate: 1 } });
  expect(await bench.admin.exists(keys.bucket)).toBe(0);
  expect(await bench.admin.exists(keys.shadowBucket)).toBe(1);

  await setParams(bench.admin, address(api), { mode: 'recommend' });
  const enforced = await Promise.all([1, 2, 3].map(() => api.take()));
  expect(enforced.map(({ allowed }) => allowed)).toEqual([true, true, false]);
});

test('without params the numbers of createLimiter decide, and say so', async () => {
  const api = limiter({ rate: 0.01, capacity: 2 });
  const decisions = await Promise.all([1, 2, 3].map(() => api.take()));
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  expect(decisions.every(({ source }) => source === 'unmanaged')).toBe(true);
  expect(api.stats().decisions.unmanaged).toBe(3);
});

test('without params and without numbers nobody is denied', async () => {
  const api = limiter();
  const decisions = await Promise.all(Array.from({ length: 2000 }, () => api.take()));
  expect(decisions.every(({ allowed }) => allowed)).toBe(true);
});

test('a take aborted before it is sent takes nothing', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { rate: 0.01, capacity: 5 });
  const abort = new AbortController();
  const taken = api.take(null, { signal: abort.signal });
  abort.abort(new Error('gone'));
  await expect(taken).rejects.toThrow('gone');
  await expect(api.take(null, { signal: abort.signal })).rejects.toThrow('gone');
  expect((await api.peek()).remaining).toBe(5);
});

test('run reports how the call ended; a denial calls nothing', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { rate: 0.01, capacity: 4, inFlightMax: 0 });
  expect(await api.run(null, () => 'done')).toBe('done');
  const fault = Object.assign(new Error('no'), { code: 'SYSTEMERROR' });
  await expect(api.run(null, () => Promise.reject(fault))).rejects.toBe(fault);
  const abort = new DOMException('left', 'AbortError');
  await expect(api.run(null, () => Promise.reject(abort))).rejects.toBe(abort);
  const slow = new DOMException('slow', 'TimeoutError');
  await expect(api.run(null, () => Promise.reject(slow))).rejects.toBe(slow);
  let called = false;
  const denied = await api
    .run(null, () => {
      called = true;
    })
    .catch((error) => error);
  expect(called).toBe(false);
  expect(denied).toBeInstanceOf(FlyballDeniedError);
  expect(denied.decision.reason).toBe('rate');
  expect(api.stats().inFlight).toBe(0);

  const telemetry = await telemetryAfterClose(api);
  expect(telemetry).toMatchObject({
    off: '5',
    adm: '4',
    'd:rate': '1',
    ok: '1',
    err: '1',
    can: '1',
    to: '1',
    'c:SYSTEMERROR': '1',
    'c:TimeoutError': '1',
    'go:0': '1',
    'ge:0': '2',
  });
});

test('telemetry carries outcomes once, database waits, pool gauge, process and generation', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { generation: 3 });
  const first = await api.take();
  first.note({ upstream: 'pay' });
  first.done('failed', { code: 'SYSTEMERROR', dbWaitMs: 12 });
  first.done('ok');
  const second = await api.take();
  second.done();
  api.reportPool(4);
  const telemetry = await telemetryAfterClose(api);
  expect(telemetry).toMatchObject({
    off: '2',
    adm: '2',
    err: '1',
    ok: '1',
    'uc:pay:SYSTEMERROR': '1',
    'gc:3:SYSTEMERROR': '1',
    'go:3': '1',
    pw: '4',
    pn: '1',
    n: '1',
    ws: '12000',
  });
  expect(Object.keys(telemetry).filter((field) => field.startsWith('pr:')).length).toBe(1);
  for (const value of Object.values(telemetry)) expect(value).toMatch(/^\d+$/);
});

/** All telemetry seconds of a limiter, summed; every key must expire. */
async function telemetryAfterClose(api: Limiter): Promise<Record<string, string>> {
  await api.close();
  const sums: Record<string, number> = {};
  for (const key of await bench.admin.keys(`flyball:{${api.name}}:t:*`)) {
    expect(await bench.admin.pttl(key)).toBeGreaterThan(0);
    for (const [field, value] of Object.entries(await bench.admin.hgetall(key))) {
      sums[field] = (sums[field] ?? 0) + Number(value);
    }
  }
  // One flush a second: a slow test may have flushed more than once.
  if (sums.n) sums.n = 1;
  return Object.fromEntries(Object.entries(sums).map(([field, sum]) => [field, String(sum)]));
}

test('the group is read from the registry', async () => {
  const api = limiter({ name: 'sdk-grouped', group: 'ignored' });
  await bench.admin.hset('flyball:limiters', 'sdk-grouped', 'payments');
  await setParams(
    bench.admin,
    { name: 'sdk-grouped', group: 'payments' },
    { rate: 0.01, capacity: 1 },
  );
  expect((await api.take()).allowed).toBe(true);
  expect((await api.take()).source).toBe('redis');
  expect(await bench.admin.exists('flyball:sdk-grouped{payments}:b')).toBe(1);
});

test('limiters of a process share one named connection, and the last one closes it', async () => {
  const ours = async () =>
    ((await bench.admin.client('LIST')) as string)
      .split('\n')
      .filter((line) => line.includes(`name=flyball-sdk/${VERSION}`)).length;
  const many = Array.from({ length: 20 }, () => limiter());
  await Promise.all(many.map((each) => each.take()));
  expect(await ours()).toBe(1);
  await Promise.all(many.slice(1).map((each) => each.close()));
  expect((await many[0]!.take()).source).toBe('unmanaged');
  await many[0]!.close();
  await until('the connection is closed', async () => (await ours()) === 0);
});

test('your own client is used, warned about where it may charge twice, and not closed', async () => {
  const mine = bench.server.client();
  const shared = limiter({ redis: mine });
  expect((await shared.take()).allowed).toBe(true);
  expect(warnings.map(({ code }) => code)).toContain('FLYBALL_W_CLIENT_RESENDS');
  await shared.close();
  expect(await mine.ping()).toBe('PONG');
  await expect(shared.take()).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_CLOSED' });
  const prefixed = bench.server.client({ keyPrefix: 'app:' });
  expect(() => limiter({ redis: prefixed })).toThrow(/keyPrefix "app:"/);
});

test('new numbers hold from the next call on, without a restart', async () => {
  const api = limiter();
  await setParams(bench.admin, address(api), { rate: 0.01, capacity: 1 });
  await api.take();
  expect((await api.take()).allowed).toBe(false);
  await setParams(bench.admin, address(api), { rate: 1000 });
  await until('a take passes', async () => (await api.take()).allowed);
  expect(api.numbers()?.rate).toBe(1000);
});
