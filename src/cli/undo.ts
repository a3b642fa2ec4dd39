/** How to undo a change: the command that goes back, as a person can paste it. Stage: cli. */
import { begunBy, endOf } from '../actuate/verbs/ends.js';
import type { Facts, VerbPlan } from '../actuate/verbs/plan.js';
import { isPartial, parseRollout, type Rollout } from '../redis/rollout.js';
import type { SubjectRule } from '../redis/subject-override.js';
import { clean, span } from './text.js';

/** More names than this are not typed again by anybody; the audit entry has them. */
const MOST_NAMES = 10;

/** Empty where the change ends by nothing but another of its kind. */
export function undoHint(plan: VerbPlan, facts: Facts, limiter: string): string {
  const until = plan.detail.until;
  const left =
    typeof until === 'number' && until > 0 ? ` (else in ${span(until - facts.nowMs)})` : '';
  if (plan.override) return subjectHint(plan.override, limiter, left, facts.nowMs);
  if (plan.reason === 'rollout') return rolloutHint(plan, facts, limiter);
  if (plan.reason === 'approve') {
    return `flyball rollback ${limiter} ${facts.params.revision} goes back, and holds.`;
  }
  const begun = begunBy(plan.reason);
  if (begun === null) return '';
  const { command, does } = endOf(begun, limiter);
  return `${command} ${does}${left}.`;
}

function subjectHint(
  { subject, before, to }: NonNullable<VerbPlan['override']>,
  limiter: string,
  left: string,
  nowMs: number,
): string {
  const command = `flyball subject ${limiter} ${shellWord(subject) ?? '<subject>'}`;
  const ends = to === null ? '' : `${command} --clear ends it${left}.`;
  if (before === null) return ends;
  const back = `${command} ${ruleFlags(before, nowMs)} brings back what was said before.`;
  return ends === '' ? back : `${ends} ${back}`;
}

/** `--capacity 500 --rate 20 --for 2h`. */
function ruleFlags({ kind, rate, capacity, untilMs }: SubjectRule, nowMs: number): string {
  const minutes = Math.max(1, Math.round((untilMs - nowMs) / 60_000));
  const hold = untilMs === -1 ? '--hold' : `--for ${minutes}m`;
  if (kind !== 'limit') return `--${kind} ${hold}`;
  const numbers = [
    ...(capacity === null ? [] : [`--capacity ${capacity}`]),
    ...(rate === null ? [] : [`--rate ${rate}`]),
  ];
  return [...numbers, hold].join(' ');
}

function rolloutHint(plan: VerbPlan, { params }: Facts, limiter: string): string {
  const before = parseRollout(params.rollout);
  const { after } = plan.detail.rollout as { after: Rollout | null };
  const command = `flyball rollout ${limiter}`;
  const ends = endOf('rollout', limiter);
  return `${command} ${wayBack(before, after)} goes back; ${ends.command} ${ends.does}.`;
}

/** What is not named stays, so names and the kind of share are told where they differ. */
function wayBack(before: Rollout | null, after: Rollout | null): string {
  if (!isPartial(before)) return '--done';
  const now = isPartial(after) ? after : null;
  const was = before.subjects ?? [];
  const is = now?.subjects ?? [];
  return [
    `--percent ${before.percent}`,
    ...(before.by === now?.by ? [] : [`--by ${before.by ?? 'subject'}`]),
    ...names(
      '--subject',
      was.filter((name) => !is.includes(name)),
    ),
    ...names(
      '--drop',
      is.filter((name) => !was.includes(name)),
    ),
  ].join(' ');
}

function names(flag: string, subjects: readonly string[]): string[] {
  if (subjects.length === 0) return [];
  const words = subjects.map(shellWord);
  if (words.length > MOST_NAMES || words.includes(null)) {
    return [`${flag} <the ${words.length} of the audit entry>`];
  }
  return [flag, ...(words as string[])];
}

/**
 * A text from Redis as one word of a shell that runs nothing of it, since people paste what they are shown. Null for
 * what cannot be typed.
 */
export function shellWord(text: string): string | null {
  if (text === '' || text.length > 100 || clean(text) !== text) return null;
  return /^[A-Za-z0-9_./][A-Za-z0-9_.:@/%+-]*$/.test(text)
    ? text
    : `'${text.replaceAll("'", "'\\''")}'`;
}
