/** Whatever a caller hands in: each take ends, no place in flight is lost, and the service's process lives on. */
import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Limiter, takeAll } from '../../src/index.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('hostile');
const { limiter } = bench;

async function ready(api: Limiter): Promise<Limiter> {
  await setParams(bench.admin, api, { rate: 0.001, capacity: 1_000, inFlightMax: 100 });
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  return api;
}

async function left(api: Limiter): Promise<number> {
  return (await api.peek()).remaining;
}

/** All fields of all telemetry seconds of a limiter, summed. */
async function telemetry({ name }: Limiter): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const key of await bench.admin.keys(`flyball:{${name}}:t:*`)) {
    for (const [field, n] of Object.entries(await bench.admin.hgetall(key))) {
      sums[field] = (sums[field] ?? 0) + Number(n);
    }
  }
  return sums;
}

test('a request may end with anything in its info: its telemetry is sent, and nothing is thrown later', async () => {
  const api = await ready(limiter());
  const infos: unknown[] = [
    { code: 500 },
    { code: Symbol('x'), upstream: Symbol('y') },
    { code: {}, upstream: 5, dbWaitMs: Number.POSITIVE_INFINITY },
    { code: null, upstream: null, dbWaitMs: null },
    { dbWaitMs: '5' },
    { dbWaitMs: Number.NaN },
    { code: 'c'.repeat(1_000_000), upstream: 'u'.repeat(1_000_000) },
    null,
    5,
    'text',
  ];
  for (const info of infos) {
    const decision = await api.take();
    decision.note(info as never);
    decision.done('failed', info as never);
  }
  api.reportPool(() => 'many' as never);
  await until('telemetry came', async () => (await telemetry(api)).err === infos.length);
  const sent = await telemetry(api);
  expect(sent).toMatchObject({ adm: infos.length, 'c:500': 1, 'ue:5': 1 });
  expect(Object.keys(sent).every((field) => field.length < 200)).toBe(true);
  expect(api.stats()).toMatchObject({ telemetryDropped: 0, inFlight: 0 });
});

test('info that throws when it is read does not keep the place of its request', async () => {
  const api = await ready(limiter({ completions: true }));
  const decision = await api.take();
  decision.note({ code: 'E' });
  const info = {
    get upstream(): string {
      throw new Error('looked at');
    },
  };
  expect(() => decision.done('failed', info)).toThrow('looked at');
  decision.done('failed');
  expect(api.stats().inFlight).toBe(0);
});

test('an error that throws when it is looked at has ended its call all the same', async () => {
  const api = await ready(limiter());
  const hostile = {
    get code(): string {
      throw new Error('code was read');
    },
    get name(): string {
      throw new Error('name was read');
    },
  };
  const thrown = api.run(null, () => {
    throw hostile;
  });
  await expect(thrown).rejects.toBe(hostile);
  expect(api.stats().inFlight).toBe(0);
});

test('I8: what onWarning does with a warning, now or later, keeps no take from its answer', async () => {
  const later = async () => {
    throw new Error('later');
  };
  const now = () => {
    throw new Error('now');
  };
  for (const onWarning of [now, later, 5 as never]) {
    const api = await ready(limiter({ onWarning }));
    const told = new Promise<Error & { code?: string }>((ok) => process.once('warning', ok));
    const decision = await api.take(null, { cost: 5_000 });
    expect(decision.reason).toBe('cost_exceeds_capacity');
    expect(await told).toMatchObject({ code: 'FLYBALL_W_ON_WARNING' });
  }
});

test('a signal that is none is told before a place is held', async () => {
  const api = await ready(limiter({ completions: true }));
  const signal = { aborted: false, throwIfAborted() {} } as unknown as AbortSignal;
  await expect(api.take('x', { signal })).rejects.toMatchObject({
    code: 'FLYBALL_E_ENFORCE_OPTION',
  });
  expect(api.stats().inFlight).toBe(0);
});

test('aborted while its place is asked for: rejected with the reason, nothing taken, nothing held', async () => {
  const api = await ready(limiter({ exact: true }));
  const before = await left(api);
  const stop = new AbortController();
  const taken = api.take(null, { signal: stop.signal });
  stop.abort(new Error('gone'));
  await expect(taken).rejects.toThrow('gone');
  expect(api.stats().inFlight).toBe(0);
  expect(await left(api)).toBe(before);
  await until(
    'its slot is back',
    async () => (await bench.admin.zcard(`flyball:{${api.name}}:fs`)) === 0,
  );
});

test('a tracer that throws costs its spans, no decision', async () => {
  const angry = () => {
    throw new Error('traced');
  };
  const span = { setAttribute: angry, recordException: angry, setStatus: angry, end: angry };
  for (const startSpan of [angry, () => span]) {
    const api = await ready(limiter({ completions: true, tracer: { startSpan } }));
    const decision = await api.take();
    expect(decision.allowed).toBe(true);
    decision.done();
    expect(api.stats().inFlight).toBe(0);
    await expect(api.run(null, angry)).rejects.toThrow('traced');
  }
});

test('an option that is wrong is told before a connection is opened or listened to', () => {
  const redis = bench.server.client();
  const before = [redis.listenerCount('error'), redis.getMaxListeners()];
  for (const wrong of [{ tracer: {} }, { rate: Number.NaN }, { clock: {} }]) {
    expect(() => limiter({ redis, ...wrong } as never)).toThrow(TypeError);
  }
  expect([redis.listenerCount('error'), redis.getMaxListeners()]).toEqual(before);
});

test("a caller's client without a bound on its listeners keeps none", async () => {
  const redis = bench.server.client();
  redis.setMaxListeners(0);
  const made = Array.from({ length: 20 }, () => limiter({ redis }));
  expect(redis.getMaxListeners()).toBe(0);
  await Promise.all(made.map((each) => each.close()));
  expect(redis.getMaxListeners()).toBe(0);
});

test('one signal for many takes is followed by one listener, and by none afterwards', async () => {
  const api = await ready(limiter({ completions: true }));
  const { signal } = new AbortController();
  const many = api.takeMany(
    Array.from({ length: 50 }, () => ({})),
    { signal },
  );
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const decision of await many) decision.done();
  for (const decision of await Promise.all([1, 2, 3].map(() => api.wait(null, { signal })))) {
    decision.done();
  }
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('an upstream that never answers holds neither the signal of its caller nor a timer', async () => {
  const { protect } = await import('../../src/enforce/protect.js');
  const api = await ready(limiter());
  const never = (_call: unknown, _signal: AbortSignal) => new Promise<void>(() => {});
  const options = { limiter: api, timeoutMs: 20, take: (signal: AbortSignal) => ({ signal }) };
  const call = protect('silent', never, options);
  const { signal } = new AbortController();
  await expect(call(signal)).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_TIMEOUT' });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(api.stats().inFlight).toBe(0);
  await call.close();
});

test('what is no wish is told, before anything is taken', async () => {
  const api = await ready(limiter());
  const set = takeAll([api]);
  const before = await left(api);
  for (const wrong of [5, 'one', []]) {
    const taken = set.take({ [api.name]: wrong } as never);
    if (Array.isArray(wrong)) await taken.then((decision) => decision.refund());
    else await expect(taken).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_OPTION' });
  }
  const outcome = api.outcome('user:1', 'paid', null as never);
  await expect(outcome).rejects.toThrow('the third argument of outcome is null');
  expect(await left(api)).toBe(before);
});

test('a limiter may be named as what every object inherits', async () => {
  const api = limiter({ name: 'constructor', rate: 100, capacity: 100 });
  const decision = await takeAll([api]).take();
  expect(decision.decisions.constructor).toMatchObject({ allowed: true, subject: null });
});

test("a client of the caller's that never connects is left without listeners", async () => {
  const redis = bench.server.client({ lazyConnect: true, port: 1, retryStrategy: () => 1_000 });
  const before = redis.eventNames().map((event) => redis.listenerCount(event));
  const made = Array.from({ length: 5 }, () => limiter({ redis, deadlineMs: 20 }));
  await Promise.all(made.map((each) => each.take()));
  await Promise.all(made.map((each) => each.close()));
  expect(redis.listenerCount('ready')).toBe(0);
  expect(redis.eventNames().map((event) => redis.listenerCount(event))).toEqual(before);
});

test('a service that has closed its limiters ends at once, also if Redis was never there', async () => {
  const script = `
    import { createLimiter } from ${JSON.stringify(join(process.cwd(), 'dist/index.js'))};
    const api = createLimiter({ name: 'nowhere', url: 'redis://127.0.0.1:1', onWarning() {} });
    await api.take();
    await api.close();
    // ioredis would hold it for 2 s, for the sake of a connection that it gave up.
    setTimeout(() => console.log('alive'), 1_900).unref();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
  let said = '';
  child.stdout.on('data', (data) => {
    said += data;
  });
  await once(child, 'close');
  expect(child.exitCode).toBe(0);
  expect(said).toBe('');
});
