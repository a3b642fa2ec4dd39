/** What the `:status` key holds each tick: the last sample and decision, for people and other daemons. Stage: report. */
import type { EntryValues } from '../actuate/entry.js';
import type { Decision, Sample } from '../decide/types.js';

export interface LimiterStatus {
  schema: 1;
  /** Redis ms of the tick, and the length of a tick: older than a few of these is stale. */
  atMs: number;
  tickMs: number;
  /** Who decided, by which token. */
  owner: string;
  fence: number;
  epoch: number;
  revision: number;
  law: string;
  policyHash: string;
  /** `drift`: the file here is not what is adopted; `pending`: it waits for `flyball apply`. */
  file: 'same' | 'drift' | 'pending' | 'none';
  /** Policy files that do not load; the adopted policy stays in force. */
  faults: string[];
  sample: Sample;
  decision: Pick<
    Decision,
    | 'change'
    | 'reason'
    | 'sentence'
    | 'state'
    | 'rate'
    | 'capacity'
    | 'inFlightMax'
    | 'verdicts'
    | 'heldBack'
  > & { terms: Record<string, number> };
  /** By signal: what its source said beside the number, or why there is none. */
  details?: Record<string, string>;
  /** How far Redis's clock is ahead of the daemon's and of the service furthest off, ms; null: not measured yet. */
  clocks?: { redisMs: number | null; servicesMs: number };
  /** In recommend and shadow mode: where the law would have the limits. */
  wouldBe: EntryValues | null;
}

/** It lives for so long: without a leader it is soon no more. */
export function statusLivesMs(tickMs: number): number {
  return Math.max(10 * tickMs, 10_000);
}

/** At Redis time `nowMs` Redis has it no more. */
export function isOutlived({ atMs, tickMs }: LimiterStatus, nowMs: number): boolean {
  return nowMs - atMs >= statusLivesMs(tickMs);
}
