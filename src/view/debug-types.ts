/** Why one subject is answered as it is, as plain data: the steps of a decision in their order, and the answer. Stage: cli, api. */
import type { Priority, TakeAnswer } from '../redis/calls.js';
import type { Effective } from '../redis/effective.js';
import type { Params } from '../redis/params.js';
import type { SubjectOverride } from '../redis/subject-override.js';
import type { DecisionView } from './decisions.js';

/** What is asked for: a take, as a service would send it. */
export interface DebugQuery {
  subject: string;
  cost: number;
  priority: Priority;
  /** `POST /api/pay`: also whether such a request comes to this limiter at all. */
  request?: { method: string; path: string } | undefined;
}

/** In the order in which to look; what does not apply is left out. */
export type DebugStepName =
  | 'params'
  | 'route'
  | 'subject'
  | 'rollout'
  | 'override'
  | 'tier'
  | 'breaker'
  | 'cost'
  | 'total'
  | 'own_bucket'
  | 'fair_share'
  | 'in_flight'
  | 'service';

/**
 * - `ok`: this does not stand in the way.
 * - `denies`, `admits`: this decides.
 * - `look`: this may be why things are not as expected.
 */
export type DebugVerdict = 'ok' | 'denies' | 'admits' | 'look';

export interface DebugStep {
  step: DebugStepName;
  verdict: DebugVerdict;
  /** One sentence with the numbers. */
  sentence: string;
}

export interface DebugAnswer extends TakeAnswer {
  /** false: in shadow (by the mode, or the rollout): it is admitted whatever the answer. */
  enforced: boolean;
  /** What the service lets through. */
  passes: boolean;
  sentence: string;
}

/** The JSON of `flyball debug`; additive only. */
export interface DebugView {
  limiter: string;
  subject: string;
  cost: number;
  priority: Priority;
  atMs: number;
  epoch: number | null;
  revision: number | null;
  /** The subject's key, and for how long (ms) it is still kept; null: there is none, so its bucket is full. */
  key: string;
  keptMs: number | null;
  /** null: no params, so each service decides by the numbers in its code. */
  answer: DebugAnswer | null;
  steps: DebugStep[];
  /** In the last five minutes, as far as it was among the heaviest; null: it was not. */
  recent: { tokens: number | null; denied: number | null } | null;
  /** Decisions of this subject that services sampled, newest first: there are some only while somebody runs `tail`. */
  samples: DecisionView[];
}

/** All that the steps are told from. */
export interface DebugFacts {
  limiter: string;
  query: DebugQuery;
  nowMs: number;
  params: Params;
  now: Effective;
  /** Is it decided in shadow, and why? */
  shadow: 'mode' | 'rollout' | null;
  /** The rollout takes a random share of the requests. */
  byChance: boolean;
  /** Where the subject stands among 10,000 parts. */
  part: number;
  /** As stored, also one that is over. */
  override: SubjectOverride | null;
  /** Good outcomes in a row; null: none is known. */
  streak: number | null;
  /** Live subjects by the index, and the most that the policy allows; null: it sets none. */
  crowd: { live: number; most: number; isLive: boolean } | null;
  keptMs: number | null;
  /** Which limiter the asked request falls under; undefined: none was asked for. */
  route?: { limiter: string; route: string } | null;
  underWay: { shares: number; reporting: number };
  /** Whole tokens left in the total, and in the tighter of total and the subject's own; null: not to be had without a write. */
  leftTotal: number | null;
  leftBoth: number | null;
  answer: DebugAnswer;
}
