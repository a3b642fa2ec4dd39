/** Arguments that several commands take, parsed strictly: numbers, revisions, durations; each error says what is allowed. Stage: cli. */
import { InvalidArgumentError } from 'commander';
import { FlyballError } from '../errors.js';
import { isoMs } from '../moment.js';

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const YEAR_MS = 365 * 86_400_000;

/** `90s`, `15m`, `2h`, `1h30m`, `7d` → ms; 1 s … 365 d. A bare number has no unit and is refused. */
export function parseSpan(text: string): number {
  const wrong = (why: string) =>
    new InvalidArgumentError(`${JSON.stringify(text)} ${why}. Write 30s, 15m, 2h, 1h30m or 7d.`);
  if (/^\d+(\.\d+)?$/.test(text)) throw wrong('has no unit');
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) throw wrong('is not a length of time');
  let total = 0;
  for (const [, digits, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) {
    total += Number(digits) * UNIT_MS[unit!]!;
  }
  if (total < 1000 || total > YEAR_MS) throw wrong('is not within 1s … 365d');
  return Math.round(total);
}

/** `--since`: a length of time back (`2h`), or an ISO time. */
export function parseSince(text: string): { agoMs: number } | { atMs: number } {
  const atMs = isoMs(text);
  if (!Number.isNaN(atMs)) return { atMs };
  try {
    return { agoMs: parseSpan(text) };
  } catch {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is no time. Write a length of time back (30s, 2h, 7d) or an ISO time (2026-05-04T13:00:00Z).`,
    );
  }
}

/** `5%` or `5`, above 0 up to 50, at most two decimals: a part, and not the most. */
export function parsePercent(text: string): number {
  const percent = /^\d+(\.\d{1,2})?%?$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (percent > 0 && percent <= 50) return percent;
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no share of the subjects. Write 5% (above 0 up to 50, two decimals at most).`,
  );
}

export function parseNumber(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is not a number ≥ 0. Write it plainly: 80 or 12.5 (rates are per second).`,
    );
  }
  return value;
}

export function parseWhole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw new InvalidArgumentError(`${JSON.stringify(text)} is not a whole number ≥ 0.`);
  }
  return Number(text);
}

export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) < 1) {
    throw new InvalidArgumentError(`${JSON.stringify(text)} is not a whole number ≥ 1.`);
  }
  return Number(text);
}

/** Revisions count from 1; `r41` and `#41`, as people write them, are taken too. */
export function parseRevision(text: string): number {
  const match = /^[r#]?(\d{1,15})$/.exec(text);
  if (!match || Number(match[1]) < 1) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is not a revision. Revisions are whole numbers from 1: flyball audit shows them.`,
    );
  }
  return Number(match[1]);
}

/** Time one policy file may take to load: the daemon's own setting. */
export function policyDeadlineMs(env: NodeJS.ProcessEnv): number {
  const text = env.FLYBALL_POLICY_DEADLINE_MS;
  if (text === undefined) return 10_000;
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (ms >= 100 && ms <= 600_000) return ms;
  throw new FlyballError(
    'FLYBALL_E_CONFIG_INVALID',
    `FLYBALL_POLICY_DEADLINE_MS is ${JSON.stringify(text)}, which is not a whole number, 100 … 600000.`,
  );
}
