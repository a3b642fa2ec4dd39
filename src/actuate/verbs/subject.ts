/** What a person says of one subject: blocked, exempt, numbers of its own, or none of it any more. Pure. Stage: actuate. */
import { hasWindow } from '../../redis/algorithms.js';
import { encodeSubject } from '../../redis/keys.js';
import {
  inForceAt,
  MAX_OVERRIDES,
  type SubjectOverride,
  type SubjectRule,
} from '../../redis/subject-override.js';
import {
  type Facts,
  type HoldFor,
  holdUntil,
  type Planner,
  short,
  standing,
  untilText,
} from './plan.js';
import { WishFault } from './wish-fault.js';

export interface SubjectWish {
  subject: string;
  kind: SubjectRule['kind'] | 'clear';
  /** Tokens per second, and tokens: of `limit`. What is not given stays the policy's. */
  rate?: number | undefined;
  capacity?: number | undefined;
  why?: string | undefined;
}

/** Says it for a while; it counts with the next take. */
export function subject(wish: SubjectWish, hold: HoldFor): Planner {
  return (facts) => {
    const { limiter, actor, nowMs, overrides } = facts;
    const name = named(wish.subject);
    const found = overrides?.get(encodeSubject(wish.subject));
    const before = found && inForceAt(found, nowMs) ? found : null;
    const { kind } = wish;
    if (kind === 'clear') {
      if (before === null) {
        return { kind: 'nothing', sentence: `Nothing is said of ${name} at ${limiter}.` };
      }
      return plan(facts, wish, before, null, {
        reason: 'subject_clear',
        sentence: `${actor} took back what was said of ${name} at ${limiter}: ${ruleText(before)}.`,
        detail: {},
      });
    }
    check(wish, facts);
    const untilMs = holdUntil(nowMs, hold);
    const to = {
      kind,
      untilMs,
      rate: kind === 'limit' ? (wish.rate ?? null) : null,
      capacity: kind === 'limit' ? (wish.capacity ?? null) : null,
      subject: wish.subject,
      by: actor,
      why: wish.why ?? '',
    };
    const was = before === null ? '' : ` (before: ${ruleText(before)})`;
    return plan(facts, wish, before, to, {
      reason: `subject_${kind}`,
      sentence: `${actor} said of ${name} at ${limiter}: ${ruleText(to)}${was}, ${untilText(untilMs)}.`,
      detail: { until: untilMs },
    });
  };
}

/** `blocked`, `exempt`, `capacity 500, rate 20/s`. */
export function ruleText({ kind, rate, capacity }: Omit<SubjectRule, 'untilMs'>): string {
  if (kind !== 'limit') return kind === 'block' ? 'blocked' : 'exempt';
  return [
    ...(capacity === null ? [] : [`capacity ${short(capacity)}`]),
    ...(rate === null ? [] : [`rate ${short(rate)}/s`]),
  ].join(', ');
}

function plan(
  facts: Facts,
  wish: SubjectWish,
  before: SubjectOverride | null,
  to: Omit<SubjectOverride, 'revision'> | null,
  entry: { reason: string; sentence: string; detail: Record<string, unknown> },
): ReturnType<Planner> {
  const { values } = standing(facts);
  return {
    kind: 'change',
    ...entry,
    before: values,
    after: values,
    agreed: ['mode'],
    change: {},
    override: { subject: wish.subject, before, to },
    detail: {
      ...entry.detail,
      subject: named(wish.subject),
      was: before === null ? null : rule(before),
      is: to === null ? null : rule(to),
    },
    notes: to === null ? [] : notesOf(to, facts),
  };
}

function notesOf(to: SubjectRule, { params, policy }: Facts): string[] {
  const notes: string[] = [];
  if (params.mode === 'off' || params.mode === 'shadow') {
    notes.push(`The mode is ${params.mode}: nobody is denied, so this changes no answer.`);
  }
  if (to.kind === 'exempt') {
    notes.push('It still takes from the total what is there, and an open breaker denies it too.');
  }
  const capacity = to.capacity ?? params.subjectCapacity;
  const maxCost = policy?.limiter.maxCost ?? 1;
  if (to.kind !== 'limit') return notes;
  if (params.windowMs === 0 && capacity < maxCost) {
    notes.push(`A take of ${short(maxCost)}, the policy's largest cost, can never pass.`);
  }
  if (params.windowMs === 0 && params.subjectRate >= 0 && capacity > params.subjectCapacity) {
    const rate = to.rate ?? params.subjectRate;
    notes.push(`Its bucket keeps what it holds now, and fills at ${short(rate)}/s.`);
  }
  return notes;
}

function check(wish: SubjectWish, { params, limiter, overrides, nowMs }: Facts): void {
  const { kind, rate, capacity } = wish;
  const field = encodeSubject(wish.subject);
  const others = [...(overrides ?? [])].filter(
    ([name, each]) => name !== field && inForceAt(each, nowMs),
  );
  if (others.length >= MAX_OVERRIDES) {
    throw new WishFault(
      (name) =>
        `${limiter} has ${others.length} overrides of subjects; ${MAX_OVERRIDES} is the most. End one with ${name('clear')}, or change the policy's perSubject.`,
      'FLYBALL_E_ACTUATE_REFUSED',
    );
  }
  if (kind !== 'limit') return;
  const { algorithm } = params;
  if (algorithm === 'leaky-bucket') {
    throw new WishFault(
      (name) =>
        `${limiter} paces by a leaky bucket, in which a subject has no numbers of its own. Use ${name('block')} or ${name('exempt')}.`,
    );
  }
  const windowed = algorithm !== '' && hasWindow(algorithm);
  if (windowed && (capacity !== undefined || rate === undefined)) {
    throw new WishFault(
      (name) =>
        `${limiter} counts in a window of ${params.windowMs} ms (${algorithm}): the limit is rate × window, so give ${name('rate')} alone.`,
    );
  }
  if (rate !== undefined && !(rate >= 1e-6 && rate <= 1e6)) {
    throw new WishFault(
      (name) =>
        `${name('rate')} is ${rate}; 0.000001 … 1000000 is allowed. To let nothing pass: ${name('block')}.`,
    );
  }
  if (capacity !== undefined && !(capacity >= 1 && capacity <= 1e9)) {
    throw new WishFault(
      (name) =>
        `${name('capacity')} is ${capacity}; 1 … 1000000000 is allowed. To let nothing pass: ${name('block')}.`,
    );
  }
  if (params.subjectRate < 0 && !windowed && (rate === undefined || capacity === undefined)) {
    throw new WishFault(
      (name) =>
        `the policy of ${limiter} gives subjects no bucket (limiter.perSubject), so this one needs both ${name('capacity')} and ${name('rate')}.`,
    );
  }
}

function rule({ kind, untilMs, rate, capacity }: SubjectRule): SubjectRule {
  return { kind, untilMs, rate, capacity };
}

/** Short enough for a sentence. */
function named(name: string): string {
  return name.length > 100 ? `${name.slice(0, 99)}…` : name;
}
