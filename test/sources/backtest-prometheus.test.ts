/** `flyball backtest --prometheus` against a real Prometheus with a week of history. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readPrometheus } from '../../src/cli/backtest-prometheus.js';
import { backtestPolicy, PLAIN } from '../support/backtest-policy.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup } from '../support/daemon.js';
import { type PastSeries, writePast } from '../support/prometheus-history.js';
import { startPrometheus, type TestPrometheus } from '../support/prometheus-server.js';
import { freePort } from '../support/redis-server.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const MINUTE = 60_000;
/** Whole minutes, the last one just over. */
const NOW = Math.floor(Date.now() / MINUTE) * MINUTE;
const EARLIER = NOW - 7 * 86_400_000 + 120 * MINUTE;
const RECENT = 30;
const WEB_USERS = {
  // "pa ss:1"
  kim: '$2b$04$abcdefghijklmnopqrstuuW53yqze0ywFbdq8X.Q.9Jl.EwWytLtS',
};

let open: TestPrometheus;
let locked: TestPrometheus;
let setup: DaemonSetup;
let policy: string;

beforeAll(async () => {
  setup = daemonSetup('redis://127.0.0.1:1');
  policy = backtestPolicy(setup);
  const series = past();
  const prepare = (folder: string) => writePast(folder, series);
  [open, locked] = await Promise.all([
    startPrometheus({ prepare }),
    startPrometheus({
      ...{ prepare, prefix: '/prom' },
      webConfig: JSON.stringify({ basic_auth_users: WEB_USERS }),
      ready: async (url) => (await fetch(`${url}/-/ready`)).status === 401,
    }),
  ]);
});
afterAll(async () => {
  await Promise.all([open?.stop(), locked?.stop()]);
  await setup.close();
});

/** Response time by the Universal Scalability Law, as load goes up from 40 to 275 a second and back. */
function minuteOf(i: number) {
  const perSecond = 40 + 235 * Math.sin((Math.PI * i) / RECENT) ** 2;
  let inFlight = 0;
  let meanMs = 50;
  for (let k = 0; k < 200; k++) {
    inFlight += 0.2 * ((perSecond * meanMs) / 1000 - inFlight);
    meanMs = 50 * (1 + 0.02 * inFlight + 0.0006 * (inFlight * inFlight + 2 * inFlight));
  }
  return { perSecond, inFlight, meanMs, p95Ms: 2.6 * meanMs };
}

/** What a daemon would have shown, once a minute in its middle: ten minutes nearly a week ago, and the last hour. */
function past(): PastSeries[] {
  const minutes = [
    ...Array.from({ length: 10 }, (_, i) => ({ atMs: EARLIER + i * MINUTE, ...minuteOf(5) })),
    ...Array.from({ length: RECENT }, (_, i) => ({
      atMs: NOW - (RECENT - i) * MINUTE,
      ...minuteOf(i),
    })),
  ];
  type Minute = (typeof minutes)[number];
  const limiter = { limiter: 'checkout', job: 'flyball', instance: 'a:9464' };
  const gauge = (name: string, value: (minute: Minute) => number, labels: object = {}) => ({
    name: `flyball_${name}`,
    labels: { ...limiter, ...labels },
    samples: minutes.map((minute): [number, number] => [minute.atMs + 30_000, value(minute)]),
  });
  let ok = 0;
  const counted = minutes.flatMap((minute) =>
    [0, 15, 30, 45].map((second): [number, number] => {
      ok += 15 * minute.perSecond;
      return [minute.atMs + second * 1000, Math.round(ok)];
    }),
  );
  return [
    gauge('sense_offered_requests_per_second', ({ perSecond }) => perSecond + 6),
    gauge('sense_admitted_requests_per_second', ({ perSecond }) => perSecond),
    gauge('sense_denied_requests_per_second', () => 2, { limit: 'rate' }),
    gauge('sense_denied_requests_per_second', () => 4, { limit: 'in_flight' }),
    gauge('estimate_error_ratio', () => 0.1),
    gauge('estimate_latency_mean_seconds', ({ meanMs }) => meanMs / 1000),
    gauge('estimate_in_flight_requests', ({ inFlight }) => inFlight),
    gauge('enforce_rate_tokens_per_second', () => 400),
    gauge('enforce_in_flight_cap_requests', () => 64),
    gauge('estimate_signal_value', ({ p95Ms }) => p95Ms, { signal: 'p95' }),
    { name: 'http_requests_total', labels: { code: '200', job: 'shop' }, samples: counted },
    {
      name: 'http_requests_total',
      labels: { code: '500', job: 'shop' },
      samples: counted.map(([atMs, n]): [number, number] => [atMs, Math.round(n / 100)]),
    },
    {
      name: 'shop_p95_seconds',
      labels: { job: 'shop' },
      samples: minutes.map(({ atMs, p95Ms }): [number, number] => [atMs + 30_000, p95Ms / 1000]),
    },
  ];
}

const run = (at: string, ...args: string[]) =>
  cli(['backtest', policy, '--since', '7d', '--prometheus', at, ...args], {
    env: { SHOP_LOGIN: `Basic ${Buffer.from('kim:pa ss:1').toString('base64')}` },
  });
const json = async (at: string, ...args: string[]) => {
  const { code, stdout, stderr } = await run(at, ...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

describe("Flyball's own metrics, over a week", () => {
  test('each minute with a record is decided, from the first days on; what it does not tell is said', async () => {
    const found = await json(open.url);
    expect(found).toMatchObject({ source: 'Prometheus', leftOut: ['declined'] });
    expect(found.breakerLeftOut).toBe(true);
    expect(found.warning).toContain('would have answered differently');
    const { summary, minutes } = found;
    expect(minutes[0].atMs).toBeGreaterThanOrEqual(EARLIER - MINUTE);
    expect(minutes[0].atMs).toBeLessThan(EARLIER + 10 * MINUTE);
    expect(summary.minutes).toBeGreaterThanOrEqual(38);
    expect(summary.minutes).toBeLessThanOrEqual(42);
    expect(summary.missingMs).toBeGreaterThan(6 * 86_400_000);
    const [first] = minutes;
    const { perSecond, meanMs, p95Ms } = minuteOf(5);
    expect(first.okPerSecond).toBeCloseTo(0.9 * perSecond, 3);
    expect(first.failedPerSecond).toBeCloseTo(0.1 * perSecond, 3);
    expect(first.meanMs).toBeCloseTo(meanMs, 3);
    expect(first.signals.p95).toBeCloseTo(p95Ms, 3);
    expect(first).toMatchObject({ deniedByRatePerSecond: 2, deniedByCapPerSecond: 4 });
    expect(first).toMatchObject({ rate: 400, inFlightMax: 64 });
    const missed = minutes.filter((minute: { missed: string[] }) => minute.missed.length > 0);
    expect(missed.length).toBeGreaterThan(5);
    const reasons = missed.flatMap(({ decisions }: { decisions: { reason: string }[] }) =>
      decisions.map(({ reason }) => reason),
    );
    expect(reasons).toContain('law_cut');
    expect(summary.metWhileMissed).toBeGreaterThan(0);
  });

  test('--closed-loop says how well the plant fits', async () => {
    const { code, stdout } = await run(open.url, '--closed-loop');
    expect(code).toBe(0);
    expect(stdout).toContain('The world would have answered differently');
    const quality = /plant: fitted to (\d+) points .*R² ([\d.]+)/.exec(stdout)!;
    expect(Number(quality[1])).toBeGreaterThan(25);
    expect(Number(quality[2])).toBeGreaterThan(0.9);
    expect(stdout).toMatch(/^policy +[\d.]+\/s/m);
  });
});

describe('queries of your own', () => {
  test('rates of counters and values of signals, beside nothing of Flyball', async () => {
    const found = await json(
      open.url,
      ...['--limiter', 'another'],
      ...['--query', 'okPerSecond=sum(rate(http_requests_total{code!~"5.."}[1m]))'],
      ...['--query', 'failedPerSecond=sum(rate(http_requests_total{code=~"5.."}[1m]))'],
      ...['--query', 'p95=1000 * max(avg_over_time(shop_p95_seconds[1m]))'],
    );
    expect(found.summary.minutes).toBeGreaterThan(30);
    const busy = found.minutes.at(-RECENT / 2);
    expect(busy.okPerSecond).toBeGreaterThan(150);
    expect(busy.okPerSecond).toBeLessThan(300);
    expect(busy.failedPerSecond).toBeCloseTo(busy.okPerSecond / 100, 0);
    expect(busy.signals.p95).toBeGreaterThan(200);
    expect(busy.missed).toEqual(['p95']);
  });

  test('one that Prometheus refuses is told with its own words, exit 1', async () => {
    const { code, stderr } = await run(open.url, '--query', 'okPerSecond=sum(rate(x[1m])');
    expect(code).toBe(1);
    expect(stderr).toMatch(/FLYBALL_E_BACKTEST_PROMETHEUS.*parse error/s);
  });

  test('several series are one too many', async () => {
    const { code, stderr } = await run(open.url, '--query', 'okPerSecond=http_requests_total');
    expect(code).toBe(1);
    expect(stderr).toContain('gives 2 series');
  });
});

describe('a login', () => {
  test('of the address, or as a header whose value stands in the environment', async () => {
    const inAddress = locked.url.replace('//', '//kim:pa%20ss:1@');
    expect((await json(inAddress)).summary.minutes).toBeGreaterThan(30);
    const byHeader = await json(locked.url, '--header', 'Authorization=env:SHOP_LOGIN');
    expect(byHeader.summary.minutes).toBeGreaterThan(30);
  });

  test.each([
    ['none', () => locked.url],
    ['a wrong one', () => locked.url.replace('//', '//kim:secret@')],
  ])('%s: told with how to give it, and without the password', async (_name, at) => {
    const error = await refused(at());
    expect(error).toMatch(/401.*--header/);
    expect(error).not.toContain('secret');
  });

  test('a header of a variable that is not set is refused, exit 64', async () => {
    const { code, stderr } = await run(locked.url, '--header', 'Authorization=env:NOT_SET');
    expect(`${code} ${stderr}`).toMatch(/^64 .*the environment has no NOT_SET/s);
  });
});

describe('not there', () => {
  test('nobody listens: exit 1, with the address', async () => {
    const gone = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr, stdout } = await run(gone);
    expect(code).toBe(1);
    expect(stderr).toMatch(/FLYBALL_E_BACKTEST_PROMETHEUS.*does not answer \(ECONNREFUSED\)/s);
    expect(stderr).toContain(gone);
    expect(stdout).toBe('');
  });

  test('a limiter that it has never heard of: no history, exit 1', async () => {
    const { code, stderr } = await run(open.url, '--limiter', 'unheard-of');
    expect(code).toBe(1);
    expect(stderr).toContain('FLYBALL_E_BACKTEST_EMPTY');
  });

  test('the wrong path: what to look at', async () => {
    expect(await refused(`${open.url}/somewhere`)).toContain('is it Prometheus?');
  });
});

/** What is said when it cannot be read. */
async function refused(url: string): Promise<string> {
  const range = { url, limiter: 'checkout', fromMs: NOW - 10 * MINUTE, toMs: NOW, queries: {} };
  const error = await readPrometheus(PLAIN, range).then(
    (found) => expect.unreachable(`found ${found.length}`),
    (why: Error) => why,
  );
  expect(error).toMatchObject({ code: 'FLYBALL_E_BACKTEST_PROMETHEUS' });
  return error.message;
}
