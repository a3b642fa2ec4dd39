/** `flyball report --html`: one file that asks for nothing, with whatever others wrote in it inert. */
import { expect, test } from 'vitest';
import { axisOf, gridOf } from '../../src/cli/report-grid.js';
import { reportPage } from '../../src/cli/report-page.js';
import { localTime } from '../../src/cli/text.js';
import type { HistoryRow } from '../../src/redis/history-rows.js';
import type { EpisodeView } from '../../src/view/episodes.js';
import type { ReportView } from '../../src/view/report-types.js';

const MINUTE = 60_000;
const AT = 30_000_000 * MINUTE;
const HOSTILE = '<script>alert(1)</script>\u202e"onload=x';

const values = (rate: number) => ({
  ...{ mode: 'auto' as const, state: 'closed' as const, rate, capacity: 10, inFlightMax: 8 },
});
const episode = (part: Partial<EpisodeView> = {}): EpisodeView => ({
  ...{ limiter: 'checkout', id: '1-0', lastId: '2-0', lane: 'in_force', moved: true },
  ...{ fromMs: AT - 30 * MINUTE, toMs: AT - 20 * MINUTE, open: false, cut: false },
  ...{ epoch: 1, firstRevision: 2, lastEpoch: 1, lastRevision: 4, changes: 3 },
  ...{ before: values(100), farthest: null, after: values(60), trips: 0, openMs: 0 },
  cause: { kind: 'objective', reason: 'law_cut', text: 'p95', revision: 2, epoch: 1 },
  ...{ persons: [], cost: null, sentence: `p95 612 ms; ${HOSTILE}` },
  ...{ from: '2027-01-15T07:30:00.000Z', to: '2027-01-15T07:40:00.000Z' },
  ...part,
});
const view = (part: Partial<ReportView> = {}): ReportView => ({
  ...{ limiter: 'checkout', mode: 'auto', state: 'closed', sinceMs: AT - 60 * MINUTE, atMs: AT },
  inForce: { rate: 60, capacity: 10, inFlightMax: 8 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  changes: { total: 3, autopilot: 2, persons: 1, byReason: { law_cut: 2, pin: 1 } },
  ...{ episodes: [episode()], more: false, knownMs: 60 * MINUTE, atFloorMs: 0, atCeilingMs: 0 },
  ...{ trips: 1, openMs: 5000, traffic: null, held: [], ceilings: [], wouldBe: null },
  suggested: null,
  ...part,
});
const row = (minute: number): HistoryRow => ({
  ...{ minute, watchedS: 60, notClosedS: minute % 10 === 0 ? 5 : 0, overloadS: 0, driftS: 0 },
  ...{ state: 'closed', rate: 60, capacity: 10, inFlightMax: 8, offered: 6000, admitted: 3600 },
  ...{ denied: { rate: 2400 }, ok: 3600, failed: 0, cancelled: 0, meanMs: 20, p50Ms: 20 },
  ...{ p95Ms: 80, p99Ms: 120, p999Ms: 200, inFlight: 3, dbWaitMs: null, dbWaitP95Ms: null },
  ...{ poolWaiting: null, processes: 1, reporting: 1, points: [] },
});
const page = (limiters: { view: ReportView; rows: HistoryRow[] }[]) =>
  reportPage({ sinceMs: AT - 60 * MINUTE, atMs: AT, redis: 'redis://127.0.0.1:6379', limiters });
const rows = Array.from({ length: 60 }, (_, i) => row(AT / MINUTE - 60 + i));

test('C98: what others wrote is text, and nothing is fetched or run', () => {
  const html = page([{ view: view({ limiter: HOSTILE }), rows }]);
  expect(html).not.toContain('<script');
  expect(html).not.toMatch(/\u202e/);
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(html).not.toMatch(/(src|href)="(?!#)/);
  expect(html).toContain("default-src 'none'");
});

test('a limiter has its figures, four plots with marks and shades, and its episodes', () => {
  const html = page([{ view: view(), rows }]);
  expect(html).toContain('<dt>changes</dt><dd>3 (2 by the autopilot, 1 by persons)');
  // Each for a wide and for a narrow screen.
  expect(html.match(/<svg class="(wide|narrow)" /g)).toHaveLength(8);
  expect(html).toContain('class="mark"');
  expect(html.match(/class="open"/g)!.length).toBeGreaterThan(3);
  expect(html).toContain('r2–r4');
  expect(html).toContain('<time datetime="2027-01-15T07:30:00.000Z"');
});

test('of several those come first whose breaker opened, then those that denied the most', () => {
  const denied = (n: number) => ({
    ...{ offered: 9000, admitted: 9000 - n, denied: n, byReason: { rate: n } },
    ...{ worstMinute: null, objectiveMissedS: 0, watchedS: 60, failed: 0, shed: 0, notClosedS: 0 },
    minutes: 60,
  });
  const named = (limiter: string, trips: number, n: number) => ({
    view: view({ limiter, trips, traffic: denied(n) }),
    rows,
  });
  const html = page([named('calm', 0, 0), named('busy', 0, 70), named('broken', 2, 3)]);
  const names = [...html.matchAll(/<th scope="row"><a href="#l\d"><bdi>(\w+)</g)];
  expect(names.map(([, name]) => name)).toEqual(['broken', 'busy', 'calm']);
});

test('what is younger than the report is drawn from its first minute; a minute alone is drawn, too', () => {
  const young = [AT / MINUTE - 9, AT / MINUTE - 8, AT / MINUTE - 2].map(row);
  const html = reportPage({
    ...{ sinceMs: AT - 1440 * MINUTE, atMs: AT, redis: '' },
    limiters: [{ view: view({ episodes: [] }), rows: young }],
  });
  const [offered] = [...html.matchAll(/class="line offered" d="([^"]+)"/g)];
  const [pair, alone] = offered![1]!.split('M').slice(1);
  expect(pair).toMatch(/^[\d.]+ [\d.]+L[\d.]+ [\d.]+$/);
  // Of the ten minutes that are shown, not of the day.
  expect(Number(pair!.split(' ')[0])).toBeLessThan(300);
  expect(alone).toMatch(/^[\d.]+ [\d.]+m-3 0h6$/);
});

test('several have links; one without traffic says why nothing is drawn', () => {
  const html = page([
    { view: view(), rows },
    { view: view({ limiter: 'search', episodes: [] }), rows: [] },
  ]);
  expect(html).toContain('<h1>Report of <bdi>2 limiters</bdi></h1>');
  expect(html).toContain('href="#l1"');
  expect(html).toContain('nothing is drawn');
  expect(html).toContain('Nothing was changed.');
});

test('eight days stay a picture: several minutes make one point, gaps stay gaps', () => {
  const days = 8 * 1440;
  const many = Array.from({ length: days }, (_, i) => row(AT / MINUTE - days + i));
  const html = reportPage({
    ...{ sinceMs: AT - days * MINUTE, atMs: AT, redis: '' },
    limiters: [{ view: view(), rows: many.filter((_, i) => i < 2000 || i > 9000) }],
  });
  expect(html.length).toBeLessThan(200_000);
  expect(html).not.toContain('NaN');
});

test('nothing that is drawn is cut off: few minutes, or one far above the others', () => {
  const counts = [900, 10_400, 14_600, 8700];
  const some = counts.map((offered, i) => ({ ...row(AT / MINUTE - 5 + i), offered }));
  const spike = rows.map((one, i) => (i === 30 ? { ...one, offered: 600_000 } : one));
  for (const [drawn, highest] of [
    [some, 14_600 / 60],
    [spike, 10_000],
  ] as const) {
    const [wide] = page([{ view: view(), rows: [...drawn] }]).match(
      /<svg class="wide"[\s\S]*?<\/svg>/,
    )!;
    const levels = [...wide.matchAll(/class="tick end"[^>]*>([\d.]+)</g)].map(([, v]) => Number(v));
    expect(Math.max(...levels)).toBeGreaterThanOrEqual(highest);
  }
});

test.each([
  [10, 2],
  [95, 15],
  [1440, 180],
  [8 * 1440, 1440],
])('over %i minutes a tick stands at each %i of the clock', (minutes, every) => {
  const grid = gridOf(AT - minutes * MINUTE + 17_000, AT);
  const { ticks, to } = axisOf(grid, 8);
  expect(ticks.length).toBeGreaterThan(3);
  expect(ticks.length).toBeLessThanOrEqual(9);
  for (const [at, label] of ticks) {
    expect(at).toBeGreaterThanOrEqual(0);
    expect(at).toBeLessThanOrEqual(to);
    const ms = (grid.first + at * grid.each) * MINUTE;
    const day = new Date(ms);
    expect((day.getHours() * 60 + day.getMinutes()) % every).toBe(0);
    expect(localTime(ms)).toContain(label);
  }
});
