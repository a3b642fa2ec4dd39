/** For consumers of a queue: process this job now, or give it back for n ms. Stage: enforce. */
import type { Priority } from '../redis/calls.js';
import { checkCost, checkDuration } from './arguments.js';
import { FlyballDeniedError, type TakeDecision } from './decision.js';
import { keptSubject } from './kept-subject.js';
import { checkKnown } from './known-options.js';
import type { Limiter } from './limiter.js';
import { partsOf } from './limiter-parts.js';
import { paced } from './pacing.js';
import type { TakeOptions } from './take-options.js';

export interface QueueGateOptions {
  /** Tokens of a job by its priority, where it does not say. Default 1 each. */
  costs?: Partial<Record<Priority, number>>;
  /** Longest delay of a job, also of one for which nobody knows a time. Default 60000. */
  maxDelayMs?: number;
}

export interface QueueWish extends Pick<TakeOptions, 'cost' | 'priority' | 'signal'> {
  subject?: string | null;
}

/** On `process`, call `decision.done` when the job has ended. */
export type QueueAnswer =
  | { action: 'process'; decision: TakeDecision }
  | { action: 'delay'; delayMs: number; decision: TakeDecision };

export interface QueueGate {
  /**
   * May this job be processed now? If not, after which time to ask again: jobs that are held up by one limit get
   * times one after another at the limit's rate, not one time for all. Rejects with `FlyballDeniedError` for a cost
   * above the capacity, which no delay would mend. Under a leaky bucket it resolves when the job may proceed.
   */
  ask(wish?: QueueWish): Promise<QueueAnswer>;
}

/** Limits for which delayed jobs line up; beyond it the oldest line is forgotten. */
const MOST_LINES = 10_000;
/** At a rate of 0 the breaker is open: it half-opens at about this pace, a policy's default probe rate. */
const PROBES_PER_SECOND = 1;

/** Create once a process, beside the limiter: `const gate = createQueueGate(limiter)`. */
export function createQueueGate(limiter: Limiter, options: QueueGateOptions = {}): QueueGate {
  const { clock, view } = partsOf('createQueueGate: limiter', limiter);
  checkKnown('createQueueGate', options, ['costs', 'maxDelayMs']);
  const { costs = {} } = options;
  checkKnown('createQueueGate: costs', costs, ['critical', 'default', 'sheddable']);
  for (const cost of Object.values(costs)) checkCost(cost);
  const maxDelayMs = checkDuration('maxDelayMs', options.maxDelayMs ?? 60_000, 1, 86_400_000);
  /** When the next of a line may ask. */
  const lines = new Map<string, number>();
  let numbers = '';

  /** What a line moves by: its part of the total's rate, or the subject's own. */
  function perSecond(own: boolean): number {
    const { rate, subjectRate } = view.current ?? view.fallback();
    const most = own && subjectRate >= 0 ? subjectRate : rate / view.processes;
    return most > 0 ? most : PROBES_PER_SECOND;
  }

  function delayOf(decision: TakeDecision, cost: number, priority: Priority): number {
    if (decision.retryAfterMs === null) return maxDelayMs;
    const { epoch, revision, state, subject } = decision;
    // Other numbers: the times given so far say nothing of them.
    const now = `${epoch} ${revision} ${state}`;
    if (numbers !== now) lines.clear();
    numbers = now;
    const own = decision.limit === 'subject';
    const line = own && subject !== null ? `subject ${keptSubject(subject)}` : priority;
    const nowMs = clock.monotonicMs();
    const atMs = Math.max(nowMs + decision.retryAfterMs, lines.get(line) ?? 0);
    lines.delete(line);
    if (lines.size >= MOST_LINES) lines.delete(lines.keys().next().value!);
    lines.set(line, Math.min(nowMs + maxDelayMs, atMs + (cost / perSecond(own)) * 1000));
    return Math.min(maxDelayMs, Math.max(1, Math.ceil(atMs - nowMs)));
  }

  return {
    async ask({ subject = null, priority = 'default', cost, signal } = {}) {
      const tokens = cost ?? costs[priority] ?? 1;
      const decision = await limiter.take(subject, {
        cost: tokens,
        priority,
        ...(signal && { signal }),
      });
      if (decision.allowed) {
        await paced(decision, signal);
        return { action: 'process', decision };
      }
      if (decision.limit === 'cost') throw new FlyballDeniedError(limiter.name, decision);
      return { action: 'delay', delayMs: delayOf(decision, tokens, priority), decision };
    },
  };
}
