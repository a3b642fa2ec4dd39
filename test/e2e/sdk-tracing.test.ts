/** Spans of takes with the real OpenTelemetry API and SDK; and nothing of them without. */
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import { takeAll } from '../../src/index.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';
import { imports } from '../support/source-tree.js';

const bench = sdkBench('traced');
const { limiter } = bench;
const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

afterEach(() => {
  trace.disable();
  context.disable();
  exporter.reset();
});

function startSdk(): void {
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
}

test('each take is a span below the active one, with what was decided and never the subject', async () => {
  startSdk();
  const api = limiter();
  const { revision } = await setParams(bench.admin, api, { rate: 0.01, capacity: 3 });
  await trace.getTracer('shop').startActiveSpan('GET /checkout', async (request) => {
    await api.take('ada', { cost: 2 });
    await api.run('ada', () => 'served', { cost: 1 });
    await api.take('ada');
    request.end();
  });
  const spans = exporter.getFinishedSpans();
  const request = spans.find(({ name }) => name === 'GET /checkout')!;
  const takes = spans.filter(({ name }) => name === 'flyball.take');
  expect(takes.map(({ attributes }) => attributes)).toEqual([
    {
      'flyball.limiter': api.name,
      'flyball.cost': 2,
      'flyball.allowed': true,
      'flyball.reason': 'ok',
      'flyball.source': 'redis',
      'flyball.revision': revision,
    },
    expect.objectContaining({ 'flyball.cost': 1, 'flyball.allowed': true }),
    {
      'flyball.limiter': api.name,
      'flyball.cost': 1,
      'flyball.allowed': false,
      'flyball.reason': 'rate',
      'flyball.limit': 'rate',
      'flyball.source': 'redis',
      'flyball.revision': revision,
    },
  ]);
  for (const take of takes) {
    expect(take.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
    expect(take.status.code).toBe(SpanStatusCode.UNSET);
    expect(take.instrumentationScope.name).toBe('flyball');
  }
});

test('a take that is aborted ends its span with the error', async () => {
  startSdk();
  const api = limiter({ rate: 1 });
  const stop = new AbortController();
  const asked = api.take(null, { signal: stop.signal });
  stop.abort(new Error('client left'));
  await expect(asked).rejects.toThrow('client left');
  const [span] = exporter.getFinishedSpans();
  expect(span).toMatchObject({ name: 'flyball.take', status: { code: SpanStatusCode.ERROR } });
  expect(span!.events[0]?.attributes?.['exception.message']).toBe('client left');
});

test('takeMany, wait and takeAll too; who waited in vain was denied, which is no error', async () => {
  startSdk();
  const api = limiter({ rate: 100 });
  await setParams(bench.admin, api, { rate: 0.01, capacity: 3 });
  await api.takeMany([{ subject: 'a' }, { subject: 'b', cost: 2 }]);
  await expect(api.wait('a', { timeoutMs: 20 })).rejects.toThrow();
  const pair = [limiter({ group: 'both', rate: 10 }), limiter({ group: 'both', rate: 10 })];
  await takeAll(pair).take();
  const spans = exporter.getFinishedSpans();
  const many = spans.filter(({ name }) => name === 'flyball.take');
  expect(many.map(({ attributes }) => attributes['flyball.cost'])).toEqual([1, 2]);
  const waited = spans.find(({ name }) => name === 'flyball.wait')!;
  expect(waited.attributes).toMatchObject({ 'flyball.allowed': false, 'flyball.reason': 'rate' });
  expect(waited.status.code).toBe(SpanStatusCode.UNSET);
  const all = spans.find(({ name }) => name === 'flyball.take_all')!;
  expect(all.attributes).toMatchObject({
    'flyball.limiter': pair.map(({ name }) => name),
    'flyball.allowed': true,
  });
});

test('an SDK that starts after the limiter is found within a beat; one that ended is left', async () => {
  const api = limiter({ rate: 100 });
  await api.take();
  startSdk();
  await until('a span of an SDK that started late', async () => {
    await api.take();
    return exporter.getFinishedSpans().length > 0;
  });
  trace.disable();
  await until('no span any more', async () => {
    exporter.reset();
    await api.take();
    return exporter.getFinishedSpans().length === 0;
  });
});

test('a tracer of your own is used; false makes no spans; anything else is refused', async () => {
  const api = limiter({ rate: 1, tracer: provider.getTracer('shop') });
  await api.take();
  expect(exporter.getFinishedSpans()[0]?.instrumentationScope.name).toBe('shop');
  exporter.reset();
  startSdk();
  await limiter({ rate: 1, tracer: false }).take();
  expect(exporter.getFinishedSpans()).toEqual([]);
  expect(() => limiter({ tracer: {} as never })).toThrow(/tracer is .*@opentelemetry\/api/);
});

test('neither OpenTelemetry nor prom-client is loaded for a service that does not ask', () => {
  expect(imports.filter(({ to }) => to.startsWith('@opentelemetry'))).toEqual([]);
  const reached = new Set(['src/index.ts', 'src/enforce/middleware/express.ts']);
  for (const path of reached) {
    for (const one of imports) {
      if (one.from === path && one.own && !one.typeOnly) reached.add(one.to);
    }
  }
  expect(reached.size).toBeGreaterThan(20);
  const loads = imports.filter(({ from, to }) => reached.has(from) && to === 'prom-client');
  expect(loads).toEqual([]);
});
