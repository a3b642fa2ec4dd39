/** The scripts as typed functions: one call each, healed when the server has forgotten the script. Stage: enforce, actuate. */
import type {
  ActuateCall,
  ActuateReply,
  HeartbeatReply,
  InFlightCall,
  InFlightReply,
  LeaseReply,
  NoteReply,
  SealedEntry,
  SlotsCall,
  SlotsReply,
  TakeCall,
  TakeReply,
  Trim,
} from './calls.js';
import type { LimiterKeys } from './keys.js';
import {
  readActuateReply,
  readHeartbeatReply,
  readInFlightReply,
  readLeaseReply,
  readNoteReply,
  readSlotsReply,
  readTakeReply,
} from './replies.js';
import { multiCommand, pipelineScripts, type RedisClient, runScript } from './run-script.js';
import { takesCommands } from './script-command.js';
import {
  actuateScript,
  heartbeatScript,
  inflightScript,
  leaseScript,
  noteScript,
  slotsScript,
  topScript,
} from './scripts.gen.js';
import { subjectTakeCall } from './subject-call.js';
import { fallbackText, takeCall, time } from './take-call.js';
import { TOP_GROWN, TOP_SUBJECTS, TOP_TTL_MS } from './top-fields.js';

export { readTakeReply } from './replies.js';
export type { RedisClient } from './run-script.js';
export { takeCall } from './take-call.js';

/** Most takes of one call; the caller splits longer batches. */
export const MAX_TAKES = 512;

/** Decides up to 512 takes of one limiter in order, in one call. */
export function take(redis: RedisClient, call: TakeCall): Promise<TakeReply> {
  const script = call.rules ? subjectTakeCall(call) : takeCall(call, takesCommands(redis));
  return runScript(redis, script, readTakeReply);
}

/** Many take calls in one pipeline: healed from NOSCRIPT as one call is, each charged once. */
export async function takePipelined(
  redis: RedisClient,
  calls: readonly TakeCall[],
): Promise<TakeReply[]> {
  return (
    await pipelineScripts(
      redis,
      calls.map((call) => takeCall(call)),
    )
  ).map(readTakeReply);
}

/**
 * The command that a MULTI queues for a take, to be read with `readTakeReply`. It carries the script's text,
 * since a transaction cannot be healed from NOSCRIPT.
 */
export function takeInMulti(call: TakeCall) {
  return multiCommand(takeCall(call));
}

/** Asks for this process's share of the in-flight cap. */
export async function inFlight(redis: RedisClient, call: InFlightCall): Promise<InFlightReply> {
  const { keys, processId, need, reports, byPlace, exact, bound = 0, fallback } = call;
  return readInFlightReply(
    await runScript(redis, {
      script: inflightScript,
      keys: [keys.params, keys.inFlight, keys.slots],
      args: [
        time(call.nowUs),
        processId,
        need,
        byPlace ? '2' : reports ? '1' : '0',
        fallbackText(fallback),
        exact === undefined ? '0' : exact ? '1' : '-',
        bound,
      ],
    }),
  );
}

/** Takes, renews or returns places under the in-flight cap, one by one. */
export async function slots(redis: RedisClient, call: SlotsCall): Promise<SlotsReply> {
  const { keys, op, ids, fallback } = call;
  return readSlotsReply(
    await runScript(redis, {
      script: slotsScript,
      keys: [keys.params, keys.slots, keys.inFlight],
      args: [time(call.nowUs), fallbackText(fallback), op, ...ids],
    }),
  );
}

/** Adds a process's heaviest subjects to a minute; resolves to the number of its fields. */
export async function addTop(
  redis: RedisClient,
  call: { keys: LimiterKeys; minute: number; fields: readonly (readonly [string, number])[] },
): Promise<number> {
  const amounts = call.fields.flat();
  return (await runScript(redis, {
    script: topScript,
    keys: [call.keys.top(call.minute)],
    args: [TOP_TTL_MS, TOP_SUBJECTS, TOP_GROWN, ...amounts],
  })) as number;
}

/** Changes what is in force and appends one audit entry, or writes nothing and says why. */
export async function actuate(redis: RedisClient, call: ActuateCall): Promise<ActuateReply> {
  const { keys, authority, expected, entry, policy } = call;
  const lease = authority.kind === 'lease' ? authority : { owner: '', token: '' };
  const change = Object.entries(call.change).flatMap(([field, value]) =>
    value === undefined ? [] : [field, String(value)],
  );
  const version = policy === undefined ? keys.policy : keys.policyVersion(policy.hash);
  return readActuateReply(
    await runScript(redis, {
      script: actuateScript,
      keys: [keys.params, keys.audit, keys.lease, keys.state, keys.policy, version],
      args: [
        time(call.nowUs),
        authority.kind,
        lease.owner,
        lease.token,
        expected.epoch,
        expected.revision,
        call.create ? '1' : '0',
        call.newEpoch ?? '',
        call.cause,
        call.refloor ?? '',
        call.leaseMs,
        entry.prev,
        entry.hash,
        entry.body,
        call.checkpoint ?? '',
        policy?.hash ?? '',
        policy?.json ?? '',
        keys.changes,
        keys.name,
        ...change,
      ],
    }),
  );
}

export interface HeartbeatCall {
  keys: LimiterKeys;
  owner: string;
  token: number;
  leaseMs: number;
  checkpoint?: string | undefined;
  nowUs?: number | undefined;
}

/** Keeps what is in force valid for another lease; writes no revision. Renews the lease as well. */
export async function heartbeat(redis: RedisClient, call: HeartbeatCall): Promise<HeartbeatReply> {
  const { keys, owner, token, leaseMs, checkpoint = '' } = call;
  return readHeartbeatReply(
    await runScript(redis, {
      script: heartbeatScript,
      keys: [keys.params, keys.lease, keys.state],
      args: [time(call.nowUs), owner, token, leaseMs, checkpoint],
    }),
  );
}

export interface LeaseCall {
  keys: LimiterKeys;
  op: 'acquire' | 'release';
  owner: string;
  /** What an earlier acquire granted: with it the lease is renewed or released. */
  token?: number | undefined;
  leaseMs: number;
  nowUs?: number | undefined;
}

/** Takes, renews or gives back the right to actuate. */
export async function lease(redis: RedisClient, call: LeaseCall): Promise<LeaseReply> {
  const { keys, op, owner, token, leaseMs } = call;
  return readLeaseReply(
    await runScript(redis, {
      script: leaseScript,
      keys: [keys.lease, keys.params],
      args: [time(call.nowUs), op, owner, token ?? '', leaseMs],
    }),
  );
}

/** Appends a note to the audit log, and trims the log if the note tells of it. */
export async function note(
  redis: RedisClient,
  call: { keys: LimiterKeys; entry: SealedEntry; trim?: Trim; nowUs?: number },
): Promise<NoteReply> {
  const { keys, entry, trim } = call;
  return readNoteReply(
    await runScript(redis, {
      script: noteScript,
      keys: [keys.audit, keys.params],
      args: [entry.prev, entry.hash, entry.body, trim?.through ?? '', trim?.hash ?? ''],
    }),
  );
}
