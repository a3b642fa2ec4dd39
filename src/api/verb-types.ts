/** What changes a limiter over HTTP: what a verb takes and answers, as types. Stage: api. */
import type { EntryValues } from '../actuate/entry.js';
import type { Evidence } from '../actuate/evidence.js';
import type { AdoptResult } from '../actuate/verbs/adopt-all.js';
import type { BoundsTold } from '../actuate/verbs/bounds-wanted.js';
import type { LimiterPlan } from '../view/plan.js';

export type Verb =
  | 'rollback'
  | 'pin'
  | 'release'
  | 'freeze'
  | 'thaw'
  | 'bounds'
  | 'trip'
  | 'reset'
  | 'approve'
  | 'promote';

/** `POST /limiters/{name}/{verb}`. */
export interface VerbRequest {
  /** What the caller saw: when it stands elsewhere by now, 409 and nothing is written. This or `basis`, but with `dryRun`. */
  revision?: number;
  /** Of that revision; default: today's. */
  epoch?: number;
  /** From the answer to a `dryRun`: done also at a newer revision, as long as what was shown to the person still holds. */
  basis?: string;
  /** Only say what would change. */
  dryRun?: boolean;
  /** For the audit log, 1 … 500 characters. */
  reason?: string;
  /** rollback, pin, freeze, bounds, trip: how long it holds, ms (default 1 h; trip: the policy's open time). */
  forMs?: number;
  /** The same, but for bounds: until a person ends it. */
  hold?: boolean;
  /** rollback, one of: what held before the last change; the last that proved good; a revision; what held at a time. */
  to?: 'last' | 'good';
  toRevision?: number;
  toEpoch?: number;
  toMs?: number;
  /** pin. */
  rate?: number;
  inFlight?: number;
  /** pin, freeze. */
  holdBreaker?: boolean;
  /** bounds: what is left out stays as the policy says. */
  rateMin?: number;
  rateMax?: number;
  inFlightMin?: number;
  inFlightMax?: number;
  /** bounds: end those that hold, instead. */
  clear?: boolean;
  /** promote: `file` is what the policy says. */
  mode?: 'shadow' | 'recommend' | 'auto' | 'file';
  /** promote: up though the evidence is not enough; needs `reason`. */
  anyway?: boolean;
}

/** What the CLI's verb says with `--json`. */
export interface VerbAnswer {
  schema: 1;
  limiter: string;
  verb: Verb;
  /** `nothing`: there was nothing to do, and `sentence` says why. */
  status: 'done' | 'dry_run' | 'nothing';
  /** After it; with `dry_run` what the plan stands on; null with `nothing`. */
  epoch: number | null;
  revision: number | null;
  before: EntryValues | null;
  after: EntryValues | null;
  hold: { untilMs: number | null } | null;
  /** Of `bounds`: within what the limits may move; else null. */
  bounds: { before: BoundsTold; after: BoundsTold } | null;
  /** Of a `dry_run`: give it back to have this done, whatever the autopilot moves besides; else null. */
  basis: string | null;
  sentence: string;
  /** What a person should know before they say yes. */
  notes: string[];
  /** Of `promote`: what was seen of the limiter since its policy was adopted; else null. */
  evidence: (Evidence & { text: string }) | null;
}

/** `POST /policies/{limiter}/apply`: the file of the daemon that answers. `basis`, or `revision` and `desired`, but with `dryRun`. */
export interface ApplyRequest
  extends Pick<VerbRequest, 'revision' | 'epoch' | 'basis' | 'dryRun' | 'reason'> {
  /** Hash of the file that the caller saw. */
  desired?: string;
  /** It runs for so many percent of the subjects first. */
  canaryPercent?: number;
  /** Until a canary is judged, ms (default 10 min). */
  forMs?: number;
}

/** What `flyball apply --json` says of one limiter. */
export interface ApplyAnswer {
  schema: 1;
  limiter: string;
  status: 'done' | 'dry_run' | 'nothing';
  /** What became of it; null: nothing was asked of Redis. */
  result: AdoptResult['status'] | null;
  /** After it; of a dry run what it stands on. */
  epoch: number | null;
  revision: number | null;
  sentence: string;
  /** As it was shown before anything was written. */
  plan: LimiterPlan;
  /** Of a dry run: give it back to have this done, whatever the law moves besides; else null. */
  basis: string | null;
}
