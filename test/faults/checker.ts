/** After any faults: do the invariants I1–I13 hold, by the audit log, Redis's state and the services' own logs? */
import { allEntries, type LimiterRecord, type RunRecord } from '../support/fault-record.js';
import { checkBreaker, checkBuckets } from './fault-buckets.js';
import {
  checkDeadlines,
  checkLocal,
  checkRevisions,
  checkShadow,
  countsOf,
} from './fault-decisions.js';
import {
  checkAuthority,
  checkBadSignals,
  checkBounds,
  checkChain,
  checkExplained,
  checkHolds,
  checkIdle,
  checkPolicies,
  checkRecommended,
} from './fault-entries.js';

export type Invariant = `I${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13}`;

export interface Checked {
  /** How many entries, windows or decisions were looked at. */
  checked: number;
  /** Each names what, when and the numbers. */
  violations: string[];
}

export interface Report {
  checks: Record<Invariant, Checked>;
  decisions: number;
  entries: number;
  violations: string[];
}

/** Checks one run; what it cannot see it counts as 0 checked, never as held. */
export async function check(record: RunRecord): Promise<Report> {
  const reports = await Promise.all(
    record.limiters.map((limiter) => checkLimiter(limiter, record)),
  );
  const checks = Object.fromEntries(
    Object.keys(reports[0] ?? {}).map((name) => {
      const each = reports.map((report) => report[name as Invariant]);
      return [name, together(each)];
    }),
  ) as Report['checks'];
  checks.I11 = together([checks.I11, checkLost(record)]);
  const lines = record.limiters.flatMap((limiter) => limiter.lines);
  return {
    checks,
    decisions: lines.reduce((sum, line) => sum + total(countsOf(line).map(({ n }) => n)), 0),
    entries: total(record.limiters.map((limiter) => allEntries(limiter).length)),
    violations: Object.entries(checks).flatMap(([name, { violations }]) =>
      violations.map((what) => `${name}: ${what}`),
    ),
  };
}

async function checkLimiter(
  limiter: LimiterRecord,
  record: RunRecord,
): Promise<Record<Invariant, Checked>> {
  const mode = limiter.end?.params.mode;
  const shadow = mode === 'shadow';
  const of = (result: Checked): Checked => ({
    checked: result.checked,
    violations: result.violations.map((what) => `${limiter.name}: ${what}`),
  });
  const nothing: Checked = { checked: 0, violations: [] };
  return {
    I1: of(checkBounds(limiter)),
    I2: of(together([checkChain(limiter), checkRevisions(limiter, record)])),
    I3: of(checkAuthority(limiter)),
    I4: of(checkBadSignals(limiter)),
    I5: shadow
      ? nothing
      : of(together([checkBuckets(limiter, record), checkLocal(limiter, record)])),
    I6: shadow ? nothing : of(checkBreaker(limiter, record)),
    I7: of(checkHolds(limiter, record.faults)),
    I8: of(checkDeadlines(limiter, record)),
    I9: of(checkPolicies(limiter)),
    I10: of(checkIdle(limiter)),
    I11: nothing,
    I12: of(together([checkRecommended(limiter), shadow ? checkShadow(limiter) : nothing])),
    I13: of(await checkExplained(limiter)),
  };
}

/** I11: with every daemon dead for long enough the safe values are in force, and a person's verbs work. */
function checkLost({ autopilotLost }: RunRecord): Checked {
  if (autopilotLost === null) return { checked: 0, violations: [] };
  const { effective, params, undone } = autopilotLost;
  const violations: string[] = [];
  const held = params.pinnedUntil !== 0 || params.frozenUntil !== 0;
  const off = (is: number, safe: number) => Math.abs(is - safe) > 1e-9 * Math.max(1, safe);
  const gone = off(effective.rate, params.safeRate) || effective.state === 'open';
  if (!held && gone) {
    violations.push(
      `without daemons ${effective.rate}/s is in force (${effective.state}), not the safe ${params.safeRate}/s`,
    );
  }
  if (!held && params.safeInFlight > 0 && off(effective.inFlightMax, params.safeInFlight)) {
    violations.push(
      `without daemons the cap is ${effective.inFlightMax}, not the safe ${params.safeInFlight}`,
    );
  }
  if (undone !== 'done') violations.push(`without daemons a person's pin ended ${undone}`);
  return { checked: 3, violations };
}

function together(each: readonly Checked[]): Checked {
  return {
    checked: total(each.map(({ checked }) => checked)),
    violations: each.flatMap(({ violations }) => violations),
  };
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + n, 0);
}
