import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Protected, type ProtectOptions, protect } from '../../src/enforce/protect.js';
import { FlyballDeniedError, type Limiter } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';
import { imports } from '../support/source-tree.js';

const bench = sdkBench('down');
const { open, limiter } = bench;
let upstream: Server;
let url: string;
/** What the upstream does with a request, and the requests it has seen. */
let answer: 'ok' | 'fail' | 'missing' | 'hang' = 'ok';
let seen = 0;

beforeAll(async () => {
  upstream = createServer((_req, res) => {
    seen += 1;
    if (answer === 'hang') return;
    res.statusCode = answer === 'ok' ? 200 : answer === 'fail' ? 500 : 404;
    res.end('paid');
  });
  await new Promise<void>((ok) => upstream.listen(0, '127.0.0.1', ok));
  url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
beforeEach(() => {
  answer = 'ok';
  seen = 0;
});
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

type Pay = Protected<[signal?: AbortSignal], string>;

async function pay(options: ProtectOptions<[signal?: AbortSignal], string> = {}): Promise<Pay> {
  const api = (options.limiter as Limiter) ?? limiter();
  await setParams(bench.admin, api, { rate: 1e4, capacity: 1e4, probeRate: 1000, openForMs: 300 });
  const made = protect<[signal?: AbortSignal], string>('payments', post, {
    limiter: api,
    timeoutMs: 5_000,
    take: (signal) => ({ ...(signal && { signal }) }),
    ...options,
  });
  open.unshift(made);
  return made;
}

async function post({ signal }: { signal: AbortSignal }): Promise<string> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw Object.assign(new Error('payments'), { code: `HTTP_${response.status}` });
  return response.text();
}

const caught = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => null as never,
    (error: Error) => error,
  );

/** What the services have reported of a limiter, added up. */
async function reported(name: string): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const key of await bench.admin.keys(limiterKeys({ name }).telemetry(0).replace(/0$/, '*'))) {
    for (const [field, n] of Object.entries(await bench.admin.hgetall(key))) {
      sums[field] = (sums[field] ?? 0) + Number(n);
    }
  }
  return sums;
}

test('reports how each call ended, with its code and the upstream', async () => {
  const api = limiter();
  const call = await pay({ limiter: api, isFailure: isServerFault });
  const hasty = await pay({ limiter: api, timeoutMs: 60 });
  expect(await call()).toBe('paid');
  answer = 'fail';
  await expect(call()).rejects.toMatchObject({ code: 'HTTP_500' });
  answer = 'missing';
  await expect(call()).rejects.toMatchObject({ code: 'HTTP_404' });
  answer = 'hang';
  await expect(hasty()).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_TIMEOUT' });
  expect(hasty.stats()).toMatchObject({ timed_out: 1, failed: 0 });
  const stop = new AbortController();
  // On a busy machine the hasty one may have given up before it was heard.
  const before = seen;
  const gone = caught(call(stop.signal));
  await until('it is under way', () => seen > before);
  stop.abort(new Error('caller left'));
  expect((await gone).message).toBe('caller left');
  expect(call.stats()).toMatchObject({ ok: 2, failed: 1, timed_out: 0, cancelled: 1, denied: 0 });
  expect(api.stats().inFlight).toBe(0);
  await Promise.all(open.splice(0).map((each) => each.close()));
  const sums = await reported(api.name);
  expect(sums).toMatchObject({
    [FIELD.ok]: 2,
    [FIELD.failed]: 1,
    [FIELD.timedOut]: 1,
    [FIELD.cancelled]: 1,
    [FIELD.upstreamOk('payments')]: 2,
    [FIELD.upstreamFailed('payments')]: 2,
    [FIELD.upstreamCode('payments', 'HTTP_500')]: 1,
    [FIELD.upstreamCode('payments', 'TIMEOUT')]: 1,
  });
});

const isServerFault = (error: unknown) => (error as { code?: string }).code !== 'HTTP_404';

test('the time over aborts the signal, whether the function listens or not', async () => {
  let aborted: unknown;
  const deaf = protect(
    'deaf',
    ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = signal.reason;
      });
      return new Promise<never>(() => {});
    },
    { limiter: { url: bench.server.url, deadlineMs: 5_000, onWarning: () => {} }, timeoutMs: 30 },
  );
  open.push(deaf);
  const error = await caught(deaf());
  expect((error as { code?: string }).code).toBe('FLYBALL_E_ENFORCE_TIMEOUT');
  expect(error.message).toMatch(/deaf.*30 ms/);
  expect(aborted).toBe(error);
  expect(deaf.limiter.name).toBe('deaf');
});

test('denied calls call nothing, are no failures, and go to the fallback', async () => {
  const api = limiter();
  const call = await pay({ limiter: api, breaker: { volumeThreshold: 1, errorRatio: 0 } });
  await setParams(bench.admin, api, { rate: 0.001, capacity: 1 });
  await call();
  const denied = await caught(call());
  expect(denied).toBeInstanceOf(FlyballDeniedError);
  expect([seen, call.state]).toEqual([1, 'closed']);
  // A denial further down the road says nothing of this upstream either.
  const outer = protect('outer', () => call(), {
    limiter: limiter(),
    breaker: { volumeThreshold: 1, errorRatio: 0 },
    fallback: (error) => (error as Error).constructor.name,
  });
  open.unshift(outer);
  for (let i = 0; i < 5; i++) expect(await outer()).toBe('FlyballDeniedError');
  expect(outer.state).toBe('closed');
  expect(outer.stats()).toMatchObject({ failed: 0, cancelled: 5, fallbacks: 5 });
});

test('opens by itself only above the threshold; then refuses here, tries one, and closes', async () => {
  const api = limiter();
  const call = await pay({ limiter: api, breaker: { volumeThreshold: 5, openMs: 1_000 } });
  answer = 'fail';
  for (let i = 0; i < 4; i++) await caught(call());
  expect(call.state).toBe('closed');
  await caught(call());
  expect(call.state).toBe('open');
  const asked = api.stats().admitted;
  const refused = await caught(call());
  expect(refused).toBeInstanceOf(FlyballDeniedError);
  const { decision } = refused as FlyballDeniedError;
  expect(decision).toMatchObject({ reason: 'breaker_open', limit: 'breaker', source: 'local' });
  expect(decision.retryAfterMs).toBeGreaterThan(0);
  expect([seen, api.stats().admitted]).toEqual([5, asked]);

  await until('half-open', () => call.state === 'half-open');
  await caught(call());
  expect(call.state).toBe('open');
  await until('half-open again', () => call.state === 'half-open');
  answer = 'ok';
  const many = await Promise.all([call(), caught(call()), caught(call())]);
  expect(many[0]).toBe('paid');
  expect(many.slice(1).every((each) => each instanceof FlyballDeniedError)).toBe(true);
  expect(call.state).toBe('closed');
  expect(await call()).toBe('paid');
});

test('a probe that hangs ends with its time; one that is cancelled makes room for the next', async () => {
  const breaker = { volumeThreshold: 1, errorRatio: 0, openMs: 300 };
  const call = await pay({ breaker, timeoutMs: 1_500 });
  answer = 'fail';
  await caught(call());
  await until('half-open', () => call.state === 'half-open');
  answer = 'hang';
  await caught(call());
  expect(call.state).toBe('open');
  await until('half-open again', () => call.state === 'half-open');
  const stop = new AbortController();
  const gone = caught(call(stop.signal));
  await until('it is under way', () => seen === 3);
  stop.abort(new Error('caller left'));
  await gone;
  expect(call.state).toBe('half-open');
  answer = 'ok';
  expect(await call()).toBe('paid');
  expect(call.state).toBe('closed');
});

test('what began before a trip neither closes nor opens it', async () => {
  const late: { ok(): void; no(error: Error): void }[] = [];
  const call = protect(
    'late',
    (_call, how: 'late' | 'fail') => {
      if (how === 'fail') throw new Error('down');
      return new Promise<string>((ok, no) => late.push({ ok: () => ok('late'), no }));
    },
    {
      limiter: limiter(),
      breaker: { volumeThreshold: 1, errorRatio: 0, openMs: 30 },
    },
  );
  open.unshift(call);
  const slow = [call('late'), caught(call('late'))];
  await until('both are under way', () => late.length === 2);
  await caught(call('fail'));
  await until('half-open', () => call.state === 'half-open');
  late[0]!.ok();
  late[1]!.no(new Error('also late'));
  await Promise.all(slow);
  expect(call.state).toBe('half-open');
});

test('follows the fleet: open at once, probes by the take, closed when the fleet is', async () => {
  const api = limiter();
  const call = await pay({ limiter: api });
  await call();
  await setParams(bench.admin, api, { state: 'open', openUntil: -1 });
  const denied = await caught(call());
  expect((denied as FlyballDeniedError).decision).toMatchObject({ reason: 'breaker_open' });
  expect((denied as FlyballDeniedError).decision.source).not.toBe('local');
  expect(call.state).toBe('open');
  await setParams(bench.admin, api, { state: 'half-open' });
  await until(
    'the fleet lets probes through',
    async () => !((await caught(call())) instanceof Error),
  );
  expect(call.state).toBe('open');
  // A probe's failure is the fleet's to judge.
  answer = 'fail';
  await until('a probe fails', async () => {
    const error = await caught(call());
    return (error as { code?: string }).code === 'HTTP_500';
  });
  answer = 'ok';
  await setParams(bench.admin, api, { state: 'closed' });
  await until('closed', async () => {
    await caught(call());
    return call.state === 'closed';
  });
  expect(await call()).toBe('paid');
});

test('an answer that comes after a trip is told of the time before it: it is no probe of the fleet', async () => {
  const api = limiter();
  const pending: ((text: string) => void)[] = [];
  const call = protect('late', () => new Promise<string>((ok) => pending.push(ok)), {
    limiter: api,
  });
  open.unshift(call);
  await setParams(bench.admin, api, { rate: 1e4, capacity: 1e4, probeRate: 1000, generation: 4 });
  const begun = call();
  await until('it is under way', () => pending.length === 1);
  await setParams(bench.admin, api, { state: 'half-open', generation: 5 });
  const probe = until('a probe is under way', () => {
    if (pending.length === 1) caught(call());
    return pending.length > 1;
  });
  await probe;
  for (const ok of pending) ok('done');
  expect(await begun).toBe('done');
  await Promise.all(open.splice(0).map((each) => each.close()));
  const sums = await reported(api.name);
  expect(sums[FIELD.generationOk(4)]).toBe(1);
  expect(sums[FIELD.generationOk(5)]).toBe(pending.length - 1);
});

test('misuse says what to give; a closed one takes no calls', async () => {
  expect(() => protect('x', 'no' as never)).toThrow(
    /second argument of protect is "no".*protect\(name/,
  );
  const api = limiter();
  const bad = (options: ProtectOptions<[], unknown>) => () =>
    protect('x', () => 1, { limiter: api, ...options });
  expect(bad({ timeoutMs: 0 })).toThrow('timeoutMs is 0');
  expect(bad({ breaker: { errorRatio: 1 } })).toThrow('breaker.errorRatio is 1');
  expect(bad({ breaker: { volumeThreshold: 0 } })).toThrow('breaker.volumeThreshold is 0');
  expect(bad({ limiter: { take() {} } as never })).toThrow('Give what createLimiter() returned');
  const call = protect('x', () => 1, { limiter: api, breaker: false, fallback: () => 2 });
  expect([await call(), call.state]).toEqual([1, 'closed']);
  await expect(
    protect('x', () => 1, { limiter: api, take: () => ({ cost: -1 }), fallback: () => 2 })(),
  ).rejects.toThrow('cost is -1');
  await call.close();
  await expect(call()).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_CLOSED' });
  expect(await api.take()).toMatchObject({ allowed: true });
});

test('the breaker’s package is loaded by flyball/protect alone', () => {
  const reached = new Set(['src/index.ts']);
  const packages = new Set<string>();
  for (const path of reached) {
    for (const { from, to, own, typeOnly } of imports) {
      if (from !== path || typeOnly) continue;
      if (own) reached.add(to);
      else packages.add(to);
    }
  }
  expect(reached.size).toBeGreaterThan(30);
  expect([...packages]).not.toContain('opossum');
  expect([...packages]).toContain('ioredis');
});
