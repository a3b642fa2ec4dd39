/** The daemon's hand on one limiter: writes, beats and notes by its lease, each told in log and metrics. Stage: daemon. */
import {
  entryValues,
  type RedisClient,
  type WriteRequest,
  write,
  writeNote,
} from '../actuate/actuator.js';
import type { Actor, EntryValues } from '../actuate/entry.js';
import type { Lease } from '../actuate/lease.js';
import type { Clock } from '../clock.js';
import type { Decision } from '../decide/types.js';
import type { Logger } from '../log.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { ParamChange, Params } from '../redis/params.js';
import type { Metrics } from '../report/metrics.js';

export interface WriterDeps {
  redis: RedisClient;
  address: LimiterAddress;
  lease: Lease;
  leaseMs: number;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  onLeaseLost?: (fence: number, detail: string) => void;
}

/** What the caller decides; who writes, and against which revision, is the writer's business. */
export type ChangeRequest = Pick<WriteRequest, 'change' | 'cause' | 'reason' | 'sentence'> &
  Partial<Omit<WriteRequest, 'authority' | 'expected' | 'actor' | 'create'>>;

export type NoteText = {
  reason: string;
  sentence: string;
  before?: EntryValues | null;
  after?: EntryValues | null;
} & Partial<Pick<WriteRequest, 'law' | 'sample' | 'stateBefore' | 'verdicts' | 'terms' | 'detail'>>;

/** Repeated refusals that waiting does not mend are noted once in this time. */
const SAME_NOTE_MS = 60_000;

export function createWriter(deps: WriterDeps) {
  const { redis, address, lease, leaseMs, clock, log, metrics } = deps;
  const limiter = address.name;
  const actor: Actor = { kind: 'autopilot', name: lease.owner };
  const notedAtMs = new Map<string, number>();

  /** One change with its entry. False: Redis refused it, which is noted; the caller reads again next tick. */
  async function change(params: Params, request: ChangeRequest): Promise<boolean> {
    const authority = lease.authority();
    if (authority === null) return false;
    const before = entryValues(params);
    const after = request.after ?? { ...before, ...valuesOf(request.change) };
    const reply = await write(
      redis,
      address,
      {
        before,
        policyHash: params.policyHash,
        ...request,
        after,
        authority,
        expected: { epoch: params.epoch, revision: params.revision },
        actor,
      },
      { leaseMs, nowMs: clock.nowMs() },
    );
    const fence = authority.kind === 'lease' ? authority.token : 0;
    if (reply.status === 'ok') {
      metrics.changes.inc({ limiter, reason: request.reason });
      log.info(
        {
          event: 'change',
          limiter,
          epoch: reply.epoch,
          revision: reply.revision,
          fence,
          reason: request.reason,
          before,
          after,
        },
        request.sentence,
      );
      return true;
    }
    if (reply.reason === 'head') metrics.auditFailures.inc({ limiter });
    if (reply.reason === 'lease') lease.lost();
    await refused(params, reply.reason, reply.detail, fence, {
      reason: request.reason,
      sentence: request.sentence,
      after,
    });
    return false;
  }

  /** A sign of life. A lease that went to another is noted once: it is lost from then on. */
  async function beat(params: Params, checkpoint: string): Promise<void> {
    const fence = lease.token ?? 0;
    const reply = await lease.beat(checkpoint);
    // Other refusals (gliding, clock, missing) are what the next turn finds and repairs.
    if (reply === null || reply.status === 'ok' || reply.reason !== 'lease') return;
    lease.lost();
    await refused(params, 'lease', 'another daemon holds it, or it lapsed', fence, {
      reason: 'heartbeat',
      sentence: 'heartbeat',
    });
  }

  async function refused(
    params: Params,
    why: string,
    detail: string,
    fence: number,
    attempted: NoteText,
  ): Promise<void> {
    metrics.refusals.inc({ limiter, reason: why });
    const sentence = `Redis refused a write of ${lease.owner} (${attempted.reason}): ${why}${detail ? `, ${detail}` : ''}. Nothing changed.`;
    log.warn(
      { event: 'refused', limiter, revision: params.revision, fence, reason: why },
      sentence,
    );
    if (why === 'lease') deps.onLeaseLost?.(fence, detail);
    const transient = why === 'lease' || why === 'revision' || why === 'held';
    const lastMs = notedAtMs.get(why);
    const nowMs = clock.monotonicMs();
    if (!transient && lastMs !== undefined && nowMs - lastMs < SAME_NOTE_MS) return;
    notedAtMs.set(why, nowMs);
    await note(params, {
      reason: 'write_refused',
      sentence,
      after: attempted.after ?? null,
      detail: { refused: why, attempted: attempted.reason, said: attempted.sentence, fence },
    });
  }

  /** A note needs the audit head, not the lease. False: it was not written. */
  async function note(params: Params, text: NoteText): Promise<boolean> {
    const { before = null, after = null, ...rest } = text;
    const reply = await writeNote(
      redis,
      address,
      {
        ...rest,
        before,
        after,
        expected: { epoch: params.epoch, revision: params.revision },
        actor,
        policyHash: params.policyHash,
      },
      { nowMs: clock.nowMs() },
    );
    if (reply.status === 'ok') return true;
    metrics.auditFailures.inc({ limiter });
    return false;
  }

  return { change, beat, note };
}

/** A decision as params; the script itself counts the generation of a trip and says until when it is open. */
export function changeOf(decision: Decision): ParamChange {
  const { state, rate, capacity, inFlightMax, openForMs } = decision;
  const change: ParamChange = { state, rate, capacity, inFlightMax };
  if (decision.reserve !== undefined) {
    change.reserveDefault = decision.reserve.default;
    change.reserveSheddable = decision.reserve.sheddable;
  }
  return state === 'open' && openForMs !== undefined ? { ...change, openForMs } : change;
}

function valuesOf(change: ParamChange): Partial<EntryValues> {
  const values: Partial<EntryValues> = {};
  if (change.mode !== undefined) values.mode = change.mode;
  if (change.state !== undefined) values.state = change.state;
  if (change.rate !== undefined) values.rate = change.rate;
  if (change.capacity !== undefined) values.capacity = change.capacity;
  if (change.inFlightMax !== undefined) values.inFlightMax = change.inFlightMax;
  if (change.reserveSheddable !== undefined) {
    values.reserve = { default: change.reserveDefault ?? 0, sheddable: change.reserveSheddable };
  }
  return values;
}
