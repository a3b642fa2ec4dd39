/** The names under which a history may be given, from a file or from Prometheus, and a minute made of such values. Stage: cli. */
import type { Policy } from '../policy/schema.js';
import type { Recorded } from '../sim/replay-recorded.js';
import { UsageError } from './output.js';
import { closest } from './text.js';

export const COLUMNS = [
  ...['okPerSecond', 'failedPerSecond', 'offeredPerSecond'],
  ...['deniedPerSecond', 'deniedByCapPerSecond'],
  ...['meanMs', 'p50Ms', 'p95Ms', 'p99Ms', 'p999Ms', 'inFlight'],
  ...['dbWaitMs', 'dbWaitP95Ms', 'poolWaiting', 'rate', 'inFlightMax'],
];

/** Is the name one of a column or of a signal of the policy? Throws what is allowed when it is not. */
export function checkColumn(policy: Policy, name: string): void {
  const known = [...COLUMNS, ...Object.keys(policy.signals)];
  if (known.includes(name)) return;
  const near = closest(name, known);
  throw new UsageError(
    `${JSON.stringify(name)} is no column${near ? `, did you mean ${near}?` : '.'}`,
    `Columns: ${known.join(', ')}.`,
  );
}

/** What was asked for is what was answered and denied, unless it is told. Null: no answers are known. */
export function recordedFrom(
  policy: Policy,
  at: { atMs: number; spanMs: number },
  values: Readonly<Record<string, number | undefined>>,
): Recorded | null {
  const { okPerSecond, failedPerSecond = 0, deniedPerSecond = 0 } = values;
  const { deniedByCapPerSecond = 0 } = values;
  if (okPerSecond === undefined) return null;
  const known = (name: string) => values[name] ?? null;
  const signals: Record<string, number> = {};
  for (const name of Object.keys(policy.signals)) {
    const value = values[name];
    if (value !== undefined) signals[name] = value;
  }
  return {
    ...at,
    ...{ okPerSecond, failedPerSecond },
    offeredPerSecond:
      values.offeredPerSecond ??
      okPerSecond + failedPerSecond + deniedPerSecond + deniedByCapPerSecond,
    ...{ deniedByRatePerSecond: deniedPerSecond, deniedByCapPerSecond },
    ...{ meanMs: known('meanMs'), p50Ms: known('p50Ms'), p95Ms: known('p95Ms') },
    ...{ p99Ms: known('p99Ms'), p999Ms: known('p999Ms'), inFlight: known('inFlight') },
    ...{ dbWaitMs: known('dbWaitMs'), dbWaitP95Ms: known('dbWaitP95Ms') },
    ...{ poolWaiting: known('poolWaiting'), rate: known('rate') },
    inFlightMax: known('inFlightMax'),
    signals,
  };
}
