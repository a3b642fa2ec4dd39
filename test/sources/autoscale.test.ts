/** The demand ratio, and the files of deploy/autoscale: their queries on a real Prometheus that scrapes two daemons' metrics. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { InForceView, Sample } from '../../src/decide/types.js';
import { unknownTraffic } from '../../src/estimate/traffic.js';
import { demandRatio } from '../../src/report/demand.js';
import { createMetrics } from '../../src/report/metrics.js';
import { reportSample } from '../../src/report/tick-metrics.js';
import { startPrometheus, type TestPrometheus } from '../support/prometheus-server.js';
import { until } from '../support/sdk-params.js';
import { read } from '../support/source-tree.js';

function sampleOf(traffic: Partial<Sample['traffic']>, inForce: Partial<InForceView>): Sample {
  return {
    ...{ nowMs: 0, dtMs: 1000, signals: {} },
    outcomes: {
      generation: 0,
      ok: 0,
      failed: 0,
      matching: 0,
      windowMs: 0,
      fresh: true,
      tick: { ok: 0, matching: 0 },
    },
    traffic: { ...unknownTraffic(), fresh: true, ...traffic },
    inForce: { state: 'closed', rate: 100, inFlightMax: 0, ...inForce } as InForceView,
  } as Sample;
}

describe('the ratio', () => {
  test('what is asked for against the limit that binds: the rate, or the cap by Little’s law', () => {
    const calm = { admittedRate: 40, offeredRate: 40 };
    expect(demandRatio(sampleOf(calm, {}))).toBe(0.4);
    const shed = { admittedRate: 100, deniedByRate: 150, deniedByCap: 50 };
    expect(demandRatio(sampleOf(shed, {}))).toBe(3);
    // 10 at a time of 200 ms are 50 a second.
    expect(demandRatio(sampleOf({ ...calm, meanMs: 200 }, { inFlightMax: 10 }))).toBe(0.8);
    expect(demandRatio(sampleOf({ ...calm, meanMs: null }, { inFlightMax: 10 }))).toBe(0.4);
  });

  test('subjects that their own buckets deny ask for nothing more', () => {
    expect(demandRatio(sampleOf({ admittedRate: 50, offeredRate: 900 }, {}))).toBe(0.5);
  });

  test('not known: no fresh telemetry, or a breaker that stops the traffic', () => {
    expect(demandRatio(sampleOf({ fresh: false, admittedRate: 50 }, {}))).toBeNull();
    expect(demandRatio(sampleOf({ admittedRate: 1 }, { state: 'open', rate: 0 }))).toBeNull();
    expect(demandRatio(sampleOf({ admittedRate: 1 }, { state: 'half-open', rate: 1 }))).toBeNull();
    expect(demandRatio(sampleOf({ admittedRate: 1 }, { rate: 0 }))).toBeNull();
  });
});

const keda = parse(read('deploy/autoscale/keda.yaml'));
const hpa = parse(read('deploy/autoscale/hpa.yaml'));
const adapter = parse(read('deploy/autoscale/prometheus-adapter.yaml'));

test('the files scale one deployment by the ratio as one value for all, and remove instances slowly', () => {
  expect(keda.spec.triggers[0]).toMatchObject({ type: 'prometheus', metricType: 'Value' });
  expect(Number(keda.spec.triggers[0].metadata.threshold)).toBe(0.8);
  expect(hpa.apiVersion).toBe('autoscaling/v2');
  const [external] = hpa.spec.metrics;
  expect(external.external.target).toEqual({ type: 'Value', value: '800m' });
  expect(external.external.metric.name).toBe(adapter.rules.external[0].name.as);
  const down = keda.spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown;
  for (const behavior of [down, hpa.spec.behavior.scaleDown]) {
    expect(behavior.stabilizationWindowSeconds).toBeGreaterThanOrEqual(300);
  }
  for (const { minReplicas, maxReplicas } of [
    hpa.spec,
    { minReplicas: keda.spec.minReplicaCount, maxReplicas: keda.spec.maxReplicaCount },
  ]) {
    expect(minReplicas).toBeLessThan(maxReplicas);
  }
});

describe('on a real Prometheus', () => {
  const [leading, standby] = [createMetrics('a'), createMetrics('b')];
  const pages: Server[] = [];
  let prometheus: TestPrometheus;

  beforeAll(async () => {
    for (const metrics of [leading, standby]) {
      const page = createServer(async (_request, response) => {
        response.setHeader('content-type', metrics.registry.contentType);
        response.end(await metrics.registry.metrics());
      });
      await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
      pages.push(page);
    }
    const targets = pages.map((page) => `127.0.0.1:${(page.address() as AddressInfo).port}`);
    prometheus = await startPrometheus({ targets });
  });
  afterAll(async () => {
    await prometheus?.stop();
    for (const page of pages) page.close();
  });

  async function ask(query: string): Promise<{ metric: Record<string, string>; value: number }[]> {
    const url = `${prometheus.url}/api/v1/query?query=${encodeURIComponent(query)}`;
    const { status, data } = (await (await fetch(url)).json()) as {
      status: string;
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    expect(status).toBe('success');
    return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  test('each query gives the one value of the daemon that leads, and none while nothing is known', async () => {
    const series = adapter.rules.external[0].seriesQuery as string;
    const fromAdapter = (adapter.rules.external[0].metricsQuery as string)
      .replace('<<.Series>>', series)
      .replace('<<.LabelMatchers>>', 'limiter="checkout"');
    const queries = [keda.spec.triggers[0].metadata.query as string, fromAdapter];
    reportSample(leading, 'checkout', sampleOf({ admittedRate: 100, deniedByRate: 60 }, {}));
    reportSample(leading, 'other', sampleOf({ admittedRate: 900 }, {}));
    reportSample(standby, 'checkout', sampleOf({ fresh: false }, {}));
    await until('the page is scraped', async () => (await ask(series)).length === 2, 30_000);
    for (const query of queries) {
      const [one, ...more] = await ask(query);
      expect([query, one?.value, more.length]).toEqual([query, 1.6, 0]);
    }
    const gone = sampleOf({ admittedRate: 1 }, { state: 'open', rate: 0 });
    reportSample(leading, 'checkout', gone);
    const now = 'flyball_enforce_demand_ratio{limiter="checkout"}';
    await until('it is absent', async () => (await ask(now)).length === 0, 30_000);
  }, 90_000);
});
