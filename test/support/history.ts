/** Days of a made-up service as rows of the history: a daily wave of demand over a known curve. */
import type { HistoryRow, KneePoint } from '../../src/redis/history-rows.js';
import { seeded } from '../../src/sim/random.js';

export const FIRST_MINUTE = 29_664_000;

export interface MadeUp {
  days: number;
  /** Good answers per second in the middle of the wave, and how far it swings, as a share. */
  mean?: number;
  swing?: number;
  /** R(N) = a + b·N + c·(N² + 2N). */
  curve?: [number, number, number];
  p999Ms?: number;
  processes?: number;
  /** Changes one minute. */
  change?: (row: HistoryRow, index: number) => Partial<HistoryRow>;
}

/** The same demand is made once: its rows are never changed, only copied. */
const made = new Map<string, HistoryRow[]>();

export function madeUp({ change, ...options }: MadeUp): HistoryRow[] {
  const key = JSON.stringify(options);
  const rows = made.get(key) ?? makeRows(options);
  made.set(key, rows);
  return change === undefined ? rows : rows.map((row, i) => Object.assign({}, row, change(row, i)));
}

function makeRows(options: Omit<MadeUp, 'change'>): HistoryRow[] {
  const { days, mean = 100, swing = 0.5, curve = [40, 0.4, 0.02], processes = 8 } = options;
  const { p999Ms = 80 } = options;
  const random = seeded(7);
  return Array.from({ length: Math.round(days * 1440) }, (_, i): HistoryRow => {
    const wave = 1 + swing * Math.sin((2 * Math.PI * i) / 1440);
    const x = mean * wave * (0.97 + 0.06 * random());
    const points = [0.9, 1, 1.1].map((share) => pointAt(curve, x * share));
    const [, n, w] = points[1]!;
    const ok = Math.round(x * 60);
    // biome-ignore format: one line a group reads better.
    return {
      minute: FIRST_MINUTE + i, watchedS: 60, notClosedS: 0, overloadS: 0, driftS: 0,
      state: 'closed', rate: 500, capacity: 1000, inFlightMax: 64,
      offered: ok, admitted: ok, denied: {}, ok, failed: 0, cancelled: 0,
      meanMs: w, p50Ms: w * 0.9, p95Ms: w * 1.5, p99Ms: w * 1.8, p999Ms,
      inFlight: n, dbWaitMs: null, dbWaitP95Ms: null, poolWaiting: null,
      processes, reporting: processes, points,
    };
  });
}

/** Where the curve gives this throughput; beyond its peak, the peak. */
export function pointAt([a, b, c]: [number, number, number], perSecond: number): KneePoint {
  const most = c > 0 ? 1000 / (b + 2 * c + 2 * Math.sqrt(a * c)) : 1000 / Math.max(b, 1e-9);
  const x = Math.min(perSecond, 0.999999 * most);
  // c·x·N² + (b·x + 2·c·x − 1000)·N + a·x = 0, the smaller root.
  const middle = 1000 - b * x - 2 * c * x;
  const root = Math.sqrt(Math.max(0, middle ** 2 - 4 * c * x * a * x));
  const n = (2 * a * x) / (middle + root);
  return [x, n, (1000 * n) / x];
}
