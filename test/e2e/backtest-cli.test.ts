/** `flyball backtest` on roll-ups in a real Redis, on Prometheus' documented HTTP API, and on a file. */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { checkColumn } from '../../src/cli/backtest-columns.js';
import { readCsv } from '../../src/cli/backtest-csv.js';
import { readPrometheus } from '../../src/cli/backtest-prometheus.js';
import { type HistoryRow, writeHistoryRow } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { backtestPolicy, PLAIN } from '../support/backtest-policy.js';
import { cli, seedLimiter } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup } from '../support/daemon.js';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);

let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;
let policy: string;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  setup = daemonSetup(server.url);
  policy = backtestPolicy(setup);
});
afterAll(async () => {
  await setup.close();
  await server.stop();
});
beforeEach(() => redis.flushall());

const run = (...args: string[]) => cli(['backtest', ...args, '--redis', server.url]);
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

/** Response time by the Universal Scalability Law: 50 ms at leisure, at most 285 a second with 41 under way. */
function rowOf(minute: number, perSecond: number, failed = 0): HistoryRow {
  let inFlight = 0;
  let meanMs = 50;
  for (let i = 0; i < 200; i++) {
    inFlight += 0.2 * ((perSecond * meanMs) / 1000 - inFlight);
    meanMs = 50 * (1 + 0.02 * inFlight + 0.0006 * (inFlight * inFlight + 2 * inFlight));
  }
  const answers = Math.round(60 * perSecond);
  return {
    minute,
    ...{ watchedS: 60, notClosedS: 0, overloadS: 0, driftS: 0, state: 'closed' },
    ...{ rate: 400, capacity: 50, inFlightMax: 64, offered: answers, admitted: answers },
    ...{ denied: {}, ok: answers - failed, failed, cancelled: 0, meanMs },
    ...{ p50Ms: 0.8 * meanMs, p95Ms: 2.6 * meanMs, p99Ms: 4 * meanMs, p999Ms: 6 * meanMs },
    ...{ inFlight, dbWaitMs: null, dbWaitP95Ms: null, poolWaiting: null },
    ...{ processes: 1, reporting: 1, points: [] },
  };
}

/** Load from 40 to 275 a second and back, one minute each, ending now. */
async function seedPast(minutes: number): Promise<number> {
  await seedLimiter(redis, address);
  const now = Math.floor(Date.now() / 60_000);
  for (let i = 0; i < minutes; i++) {
    const load = 40 + 235 * Math.sin((Math.PI * i) / minutes) ** 2;
    await writeHistoryRow(redis, keys, rowOf(now - minutes + i, load));
  }
  return now - minutes;
}

describe('roll-ups in Redis', () => {
  test('each minute is decided; what the past does not tell is left out and said; nothing is written', async () => {
    const first = await seedPast(20);
    const before = await redis.dbsize();
    const found = await json(policy);
    expect(found).toMatchObject({
      ...{ schema: 1, policy: 'checkout', law: 'adaptive', leftOut: ['declined'] },
      ...{ breakerLeftOut: true, summary: { minutes: 20, missingMs: 0 }, closedLoop: null },
    });
    expect(found.warning).toContain('would have answered differently');
    expect(found.minutes[0]).toMatchObject({ atMs: first * 60_000, missed: [], rate: 400 });
    const slow = found.minutes.filter((minute: { missed: string[] }) => minute.missed.length > 0);
    expect(slow.length).toBeGreaterThan(2);
    const reasons = slow.flatMap(({ decisions }: { decisions: { reason: string }[] }) =>
      decisions.map(({ reason }) => reason),
    );
    expect(reasons).toContain('law_cut');
    expect(found.summary.metWhileMissed).toBeGreaterThan(0);
    expect(await redis.dbsize()).toBe(before);
  });

  test('for people: the warning, the table, the sums; --since takes less of the past', async () => {
    await seedPast(20);
    const { code, stdout } = await run(policy);
    expect(code).toBe(0);
    expect(stdout).toContain('20 minutes');
    expect(stdout).toContain('The world would have answered differently');
    expect(stdout).toContain('Left out, since this past does not tell their values: declined.');
    expect(stdout).toContain('Left out: the breaker.');
    expect(stdout).toMatch(/law_cut/);
    expect(stdout).toMatch(/An objective was missed in \d+ of 20/);
    const few = await json(policy, '--since', '5m');
    expect(few.summary.minutes).toBeGreaterThan(2);
    expect(few.summary.minutes).toBeLessThan(7);
  });

  test('--closed-loop plays the worst hour on the fitted plant, and says how well it fits', async () => {
    await seedPast(24);
    const { code, stdout } = await run(policy, '--closed-loop');
    expect(code).toBe(0);
    const quality = Number(/plant: fitted to 24 points .*R² ([\d.]+)/.exec(stdout)?.[1]);
    expect(quality).toBeGreaterThan(0.9);
    const rowOf = (who: string) => {
      const [, good, p95, changes] = new RegExp(
        `^${who} +([\\d.]+)/s +(\\d+) ms +[\\d.]+ % +(\\d+)$`,
        'm',
      ).exec(stdout)!;
      return { good: Number(good), p95: Number(p95), changes: Number(changes) };
    };
    const own = rowOf('policy');
    expect(own.p95).toBeLessThan(rowOf('no limit').p95);
    expect(own.changes).toBeGreaterThan(0);
    expect(rowOf('its numbers, never moved')).toMatchObject({ changes: 0 });
  });

  test('a past without a knee gives no plant: exit 1, with what is missing, and the rest all the same', async () => {
    await seedPast(6);
    const { code, stdout } = await run(policy, '--closed-loop');
    expect(code).toBe(1);
    expect(stdout).toContain('6 minutes');
    expect(stdout).toMatch(/No closed loop: .*too few/);
  });

  test('no history', async () => {
    await seedLimiter(redis, address);
    const { code, stderr } = await run(policy);
    expect(code).toBe(1);
    expect(stderr).toContain('FLYBALL_E_BACKTEST_EMPTY');
  });
});

describe('Prometheus', () => {
  let prometheus: Server;
  let url: string;
  let asked: URLSearchParams[];
  let auth: string | undefined;
  let answer: (query: string, times: number[]) => object | string;

  beforeEach(async () => {
    asked = [];
    prometheus = createServer((request: IncomingMessage, response) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://x');
      if (pathname !== '/prom/api/v1/query_range') return void response.writeHead(404).end('no');
      asked.push(searchParams);
      auth = request.headers.authorization;
      const [start, end, step] = ['start', 'end', 'step'].map((n) => Number(searchParams.get(n)));
      const times: number[] = [];
      for (let t = start!; t <= end!; t += step!) times.push(t);
      const found = answer(searchParams.get('query')!, times);
      const isText = typeof found === 'string';
      const isFault = !isText && 'error' in found;
      response.writeHead(isFault ? 400 : 200, { 'content-type': 'application/json' });
      response.end(isText ? found : JSON.stringify(found));
    });
    await new Promise<void>((ok) => prometheus.listen(0, '127.0.0.1', ok));
    url = `http://127.0.0.1:${(prometheus.address() as AddressInfo).port}/prom/`;
  });
  afterEach(() => new Promise((ok) => prometheus.close(ok)));

  const matrix = (...result: object[]) => ({
    status: 'success',
    data: { resultType: 'matrix', result },
  });
  const series = (metric: object, times: number[], value: (t: number, i: number) => unknown) => ({
    metric,
    values: times.map((t, i) => [t, String(value(t, i))]),
  });

  test("Flyball's own metrics, signals by their label, without any query", async () => {
    answer = (query, times) => {
      const values: Record<string, number> = {
        flyball_sense_offered: 50,
        flyball_sense_admitted: 40,
        flyball_sense_denied: 10,
        flyball_estimate_error_ratio: 0.1,
        flyball_estimate_latency_mean_seconds: 0.1,
        flyball_enforce_rate: 90,
      };
      if (query.includes('flyball_estimate_signal_value')) {
        expect(query).toMatch(/^max by \(signal\) \(.*\{limiter="checkout"\}\[1m\]/);
        return matrix(
          series({ signal: 'p95' }, times, (_t, i) => (i < 4 ? 150 : 700)),
          series({ signal: 'declined' }, times, (_t, i) => (i === 1 ? 'NaN' : 2)),
          series({ signal: 'of another policy' }, times, () => 1),
        );
      }
      const [, value] = Object.entries(values).find(([name]) => query.includes(name)) ?? [];
      const times1000 = query.startsWith('1000 * ') ? 1000 : 1;
      return matrix(...(value === undefined ? [] : [series({}, times, () => times1000 * value)]));
    };
    const found = await json(policy, '--since', '8m', '--prometheus', url);
    expect(found).toMatchObject({ source: 'Prometheus', leftOut: [], breakerLeftOut: true });
    const [first] = found.minutes;
    expect(first).toMatchObject({ offeredPerSecond: 50, okPerSecond: 36, failedPerSecond: 4 });
    expect(first).toMatchObject({ meanMs: 100, rate: 90, signals: { p95: 150, declined: 2 } });
    expect(found.minutes[1].signals).toEqual({ p95: 150 });
    expect(first.atMs).toBe(Number(asked[0]!.get('start')) * 1000 - 60_000);
    const reasons = found.minutes.map(({ decisions }: { decisions: { reason: string }[] }) =>
      decisions.map(({ reason }) => reason),
    );
    expect(reasons.slice(4).flat()).toContain('law_cut');
  });

  test('queries of the user, a login of the address, and a range in parts that Prometheus takes', async () => {
    answer = (query, times) => {
      if (query.includes('flyball_')) return matrix();
      // Few points of a long range: only the span matters here.
      const some = times.slice(0, 2);
      return matrix(series({}, some, () => (query === 'ok' ? 30 : 100)));
    };
    const login = url.replace('//', '//kim:pa%20ss@');
    const found = await json(
      ...[policy, '--since', '10d', '--prometheus', login],
      ...['--query', 'okPerSecond=ok', '--query', 'p95=p95{a="b"}'],
    );
    expect(auth).toBe(`Basic ${Buffer.from('kim:pa ss').toString('base64')}`);
    const parts = asked.filter((params) => params.get('query') === 'p95{a="b"}');
    expect(parts).toHaveLength(2);
    for (const params of parts) {
      const points = (Number(params.get('end')) - Number(params.get('start'))) / 60;
      expect(points).toBeLessThan(11_000);
      expect(params.get('step')).toBe('60');
    }
    expect(found.summary.minutes).toBe(4);
    expect(found.summary.missingMs).toBeGreaterThan(0);
    expect(found.minutes[0]).toMatchObject({ okPerSecond: 30, signals: { p95: 100 } });
  });

  test('what goes wrong is told, without the password', async () => {
    const told = async (queries: Record<string, string> = {}, at = url) => {
      const login = at.replace('//', '//kim:secret@');
      const range = { url: login, limiter: 'checkout', fromMs: 0, toMs: 120_000, queries };
      const error = await readPrometheus(PLAIN, range).then(
        (found) => expect.unreachable(`found ${found.length}`),
        (why: Error) => why,
      );
      expect(error).toMatchObject({ code: 'FLYBALL_E_BACKTEST_PROMETHEUS' });
      expect(error.message).not.toContain('secret');
      return error.message;
    };
    answer = () => ({ status: 'error', errorType: 'bad_data', error: 'parse error: unexpected )' });
    expect(await told()).toContain('parse error: unexpected )');
    answer = () => '<html>';
    expect(await told()).toContain('no JSON: is it Prometheus?');
    answer = () => ({ status: 'success', data: { resultType: 'scalar', result: [0, '1'] } });
    expect(await told()).toContain('no series over time (scalar)');
    answer = (query, times) =>
      query === 'two'
        ? matrix(
            series({ a: '1' }, times, () => 1),
            series({ a: '2' }, times, () => 1),
          )
        : matrix();
    expect(await told({ okPerSecond: 'two' })).toContain('gives 2 series');
    const gone = `http://127.0.0.1:${await freePort()}/`;
    expect(await told({}, gone)).toContain('does not answer (ECONNREFUSED)');
  });

  test('no series is no past; names and pairs of options are checked', async () => {
    answer = () => matrix();
    const wrong = async (...args: string[]) => {
      const { code, stderr } = await run(policy, ...args);
      return `${code} ${stderr}`;
    };
    expect(await wrong('--prometheus', url)).toContain('FLYBALL_E_BACKTEST_EMPTY');
    expect(() => checkColumn(PLAIN, 'okPerSeconds')).toThrow('did you mean okPerSecond?');
    expect(() => checkColumn(PLAIN, 'p95')).not.toThrow();
    expect(await wrong('--prometheus', url, '--csv', 'x.csv')).toMatch(/^64 .*two pasts/s);
    expect(await wrong('--query', 'okPerSecond=x')).toMatch(/^64 .*--prometheus <url>/s);
    expect(await wrong('--query', 'okPerSecond')).toMatch(/^64 .*name=promql/s);
    expect(await wrong('--prometheus', 'ftp://x')).toMatch(/^64 .*no address/s);
  });
});

describe('a file', () => {
  const csv = (text: string) => {
    const path = join(setup.dir, 'past.csv');
    writeFileSync(path, text);
    return path;
  };

  test('columns and signals by name, ISO times or milliseconds, gaps and cells left empty', async () => {
    const path = csv(
      'atMs,okPerSecond,p95,meanMs,deniedPerSecond\n' +
        '2026-05-04T13:01:00Z,40,180,80,\n2026-05-04T13:00:00Z,40,170,80,5\n\n' +
        `${Date.parse('2026-05-04T13:02:00Z')},40,900,400,0\n2026-05-04T13:10:00Z,40,170,80,0\n`,
    );
    const found = await json(policy, '--csv', path);
    expect(found.summary).toMatchObject({ minutes: 4, missingMs: 7 * 60_000, missed: 1 });
    expect(found.minutes[0]).toMatchObject({ offeredPerSecond: 45, signals: { p95: 170 } });
    expect(found.minutes[1]).toMatchObject({ offeredPerSecond: 40 });
    expect(found.minutes[2].missed).toEqual(['p95']);
    const { stdout } = await run(policy, '--csv', path, '--all');
    // By the clock on the wall here, which may be at the next day already.
    expect(stdout.match(/^2026-05-0[45]/gm)).toHaveLength(4);
  });

  test.each([
    ['atMs,okPerSecond\n2026-05-04T13:00:00Z,many\n', 'line 2: okPerSecond is "many"'],
    ['atMs,okPerSecond\nyesterday,1\n', 'line 2: atMs is "yesterday"'],
    ['atMs,okPerSecond\n2026-02-30T00:00Z,1\n', 'line 2: atMs is "2026-02-30T00:00Z"'],
    ['atMs,okPerSecond\n1000,1\n1000,2\n', 'has two lines of 1970-01-01T00:00:01.000Z'],
    ['atMs,meanMs\n1000,1\n', 'has no column okPerSecond'],
    ['atMs,okPerSecond,p59Ms\n1000,1,1\n', 'did you mean p50Ms?'],
    ['', 'has no column atMs'],
  ])('a fault is told with its line: %j', (text, says) => {
    expect(() => readCsv(csv(text), PLAIN)).toThrow(says);
  });

  test('a file that is not there', () => {
    expect(() => readCsv(join(setup.dir, 'gone.csv'), PLAIN)).toThrow('cannot be read (ENOENT)');
  });
});
