/** An alert as plain data, and as the words that every destination sends: what, why, who, the numbers, the way back. Stage: report. */
import type { AlertKind } from '../../policy/notify-schema.js';
import { limiterOfCanary } from '../../redis/canary.js';
import { UNSAFE } from '../../unsafe.js';

export type Severity = 'critical' | 'warning' | 'info';

export interface Alert {
  /** One for each condition as long as it lasts: what is known by it is not told twice. */
  key: string;
  kind: AlertKind;
  severity: Severity;
  /** `event`: it has no end of its own. */
  state: 'firing' | 'resolved' | 'event';
  /** null: it concerns all of them. */
  limiter: string | null;
  /** Whom the policy names. */
  owner: string | null;
  what: string;
  why: string;
  /** Who acted, or who saw it. */
  who: string;
  numbers: readonly (readonly [string, string])[];
  /** The command that takes it back; null where there is nothing to take back. */
  undo: string | null;
  /** The command that shows more. */
  look: string;
  /** Wall ms since which it holds. */
  atMs: number;
}

const SEVERITIES = {
  trip: 'critical',
  retrip: 'critical',
  redis_away: 'critical',
  evictions: 'critical',
  params_restored: 'critical',
  at_floor: 'warning',
  denied: 'warning',
  subjects_overflow: 'warning',
  fallback: 'warning',
  slow_decisions: 'warning',
  signal_lost: 'warning',
  policy_failed: 'warning',
  failover: 'warning',
  writes_lost: 'warning',
  auto_rollback: 'warning',
  canary_failed: 'warning',
  lease_lost: 'warning',
  hold_ending: 'info',
  test: 'info',
} as const satisfies Record<AlertKind, Severity>;

export const severityOf = (kind: AlertKind): Severity => SEVERITIES[kind];

/** Of what a canary runs on people know the limiter, of which it is a part: the alert is told of that. */
export function ofItsLimiter(alert: Alert): Alert {
  const limiter = limiterOfCanary(alert.limiter ?? '');
  return limiter === null ? alert : { ...alert, limiter, what: `its canary: ${alert.what}` };
}

const LONGEST = 600;

/**
 * Text from outside on one line, short. Subjects, error codes and names of people come from there: nothing of them may
 * steer a terminal or a chat.
 */
export function plain(text: string): string {
  const line = text.replace(UNSAFE, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}

/** `[critical] checkout: tripped, rate 0`. */
export function titleOf(alert: Alert): string {
  const mark = alert.state === 'resolved' ? 'resolved' : alert.severity;
  const whom = alert.limiter === null ? 'flyball' : alert.limiter;
  return plain(`[${mark}] ${whom}: ${alert.what}`);
}

/** What the title does not say, line by line, each `[label, text]`; commands last. */
export function linesOf(alert: Alert): [string, string][] {
  const numbers = alert.numbers.map(([name, value]) => `${name} ${value}`).join(' · ');
  const lines: [string, string][] = [['why', alert.why]];
  if (numbers !== '') lines.push(['numbers', numbers]);
  lines.push(['who', alert.who]);
  if (alert.owner !== null) lines.push(['owner', alert.owner]);
  lines.push(['since', new Date(alert.atMs).toISOString().replace(/\.\d+Z$/, 'Z')]);
  if (alert.undo !== null) lines.push(['undo', alert.undo]);
  lines.push(['look', alert.look]);
  return lines.map(([label, text]) => [label, plain(text)]);
}

/** Title and lines as one text. */
export function textOf(alert: Alert): string {
  return [titleOf(alert), ...linesOf(alert).map(([label, text]) => `${label}: ${text}`)].join('\n');
}
