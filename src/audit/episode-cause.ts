/** The worst of what the entries of an episode say, as its cause; and what persons did in it. Pure. Stage: audit. */
import { recommendedLead } from '../actuate/recommended.js';
import type { Over } from '../decide/told-types.js';
import type { CauseKind, EpisodeAct, EpisodeCause, EpisodeEntry } from './episode-types.js';

/** Reason codes of an autopilot; a person's entry is a person's, whatever its code. */
const KINDS: Record<string, CauseKind> = {
  ...each('objective', 'law_cut', 'law_emergency_cut', 'step_slow', 'step_db_waits', 'at_floor'),
  ...each('breaker', 'breaker_trip', 'breaker_upstream', 'breaker_shed'),
  ...each('breaker', 'breaker_probe_failed', 'breaker_probe_deadline'),
  ...each('recovery', 'breaker_recovering', 'breaker_ramp', 'breaker_closed', 'trip_over'),
  ...each('recovery', 'law_raise', 'law_settle', 'step_healthy', 'hold_lapsed'),
  ...each('redis', 'redis_failover', 'failover_over', 'writes_lost', 'params_restored'),
  ...each('redis', 'clock_regression'),
  ...each('window', 'window_begins', 'window_ends', 'bounds_lapsed'),
  ...each('policy', 'policy_adopted', 'params_created', 'policy_numbers', 'fixed'),
  ...each('policy', 'canary_begins', 'canary_passed', 'canary_failed', 'canary_unproven'),
  ...each('policy', 'canary_stopped'),
  ...each('signals', 'glide_missing'),
  ...each('autopilot_lost', 'glide_settled'),
  ...each('downstream', 'downstream_share'),
  ...each('tune', 'tune'),
  ...each('rollback', 'auto_rollback'),
};

function each(kind: CauseKind, ...reasons: string[]): Record<string, CauseKind> {
  return Object.fromEntries(reasons.map((reason) => [reason, kind]));
}

/** Codes of what persons do; those of daemons are above. */
const VERBS = [
  ...['rollback', 'pin', 'release', 'freeze', 'thaw', 'rollout', 'trip', 'reset'],
  ...['promote', 'approve', 'bounds_set', 'bounds_cleared'],
  ...['subject_block', 'subject_exempt', 'subject_limit', 'subject_clear'],
];
const NOTES = [
  ...['write_refused', 'signal_missing', 'clock_skew', 'audit_trimmed', 'audit_retention'],
  'redis_evicted',
];

/** For who asks for one by name; others may stand in a log of another version. */
export const REASON_CODES: readonly string[] = [
  ...new Set([...Object.keys(KINDS), ...VERBS, ...NOTES]),
];

/** Worst first. What only follows from others stands last. */
const WORST: readonly CauseKind[] = [
  'redis',
  'breaker',
  'objective',
  'rollback',
  'autopilot_lost',
  'signals',
  'person',
  'window',
  'policy',
  'tune',
  'downstream',
  'other',
  'recovery',
];

function causeKind({ body }: EpisodeEntry): CauseKind {
  if (body.actor.kind === 'person') return 'person';
  return Object.hasOwn(KINDS, body.reason) ? KINDS[body.reason]! : 'other';
}

/** The worst kind; of readings over their setpoint the farthest over it, else the first that says so. */
export function causeOf(entries: readonly EpisodeEntry[]): EpisodeCause {
  let worst: { entry: EpisodeEntry; rank: number; over: Over | null } | undefined;
  for (const entry of entries) {
    const rank = WORST.indexOf(causeKind(entry));
    if (worst !== undefined && rank > worst.rank) continue;
    const over = overOf(entry);
    const same = worst?.rank === rank;
    if (same && !((over?.ratio ?? 0) > (worst?.over?.ratio ?? 0))) continue;
    // A breaker's first word stays: a probe that failed later is not what opened it.
    if (same && WORST[rank] !== 'objective') continue;
    worst = { entry, rank, over };
  }
  const { entry, over, rank } = worst!;
  const kind = WORST[rank]!;
  return {
    kind,
    reason: entry.body.reason,
    text: kind === 'objective' && over ? `${over.signal} ${over.value}` : words(entry, kind),
    ...(kind === 'objective' && over ? over : {}),
    revision: entry.revision,
    epoch: entry.epoch,
  };
}

export function actsOf(entries: readonly EpisodeEntry[]): EpisodeAct[] {
  return entries
    .filter(({ body }) => body.actor.kind === 'person')
    .map(({ body, epoch, revision }) => ({
      verb: body.reason,
      by: body.actor.name,
      why: whyOf(body.detail),
      ...{ epoch, revision },
      atMs: body.atMs,
    }));
}

/** As its decision saw it; null: it looked at no setpoint, or is of before this was written down. */
function overOf({ body }: EpisodeEntry): Over | null {
  const over = body.detail?.over;
  if (typeof over !== 'object' || over === null) return null;
  const { signal, value, setpoint, ratio } = over as Record<keyof Over, unknown>;
  if (typeof signal !== 'string' || typeof value !== 'string') return null;
  if (typeof setpoint !== 'string' || typeof ratio !== 'number') return null;
  return { signal, value, setpoint, ratio };
}

const LONGEST_WORDS = 140;

/** What was seen, without the numbers that the episode says itself. */
function words(entry: EpisodeEntry, kind: CauseKind): string {
  const { body } = entry;
  if (kind === 'person') return `${verbWords(entry)} by ${body.actor.name}${quoted(body.detail)}`;
  const lead = body.before === null ? '' : recommendedLead(body.before.mode);
  const said = body.sentence.startsWith(lead) ? body.sentence.slice(lead.length) : body.sentence;
  const first = said.split(/; |\.$/)[0]!.trim();
  if (first === '') return body.reason;
  return first.length > LONGEST_WORDS ? `${first.slice(0, LONGEST_WORDS - 1)}…` : first;
}

/** `rollback to r7`, `subject_block user:42`, `pin`. */
function verbWords({ body }: EpisodeEntry): string {
  const { toRevision, subject } = body.detail ?? {};
  if (typeof toRevision === 'number') return `${body.reason} to r${toRevision}`;
  if (typeof subject === 'string') return `${body.reason} ${subject}`;
  return body.reason;
}

function quoted(detail: Record<string, unknown> | undefined): string {
  const why = whyOf(detail);
  return why === null ? '' : ` (${why})`;
}

function whyOf(detail: Record<string, unknown> | undefined): string | null {
  const why = detail?.why;
  return typeof why === 'string' && why !== '' ? why : null;
}
