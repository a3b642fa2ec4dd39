/** The scripts as typed functions: one call each, healed when the server has forgotten the script. Stage: enforce, actuate. */
import type {
  ActuateCall,
  ActuateReply,
  FallbackNumbers,
  HeartbeatReply,
  InFlightCall,
  InFlightReply,
  LeaseReply,
  NoteReply,
  SealedEntry,
  TakeCall,
  TakeReply,
  TakeRequest,
} from './calls.js';
import type { LimiterKeys } from './keys.js';
import {
  readActuateReply,
  readHeartbeatReply,
  readInFlightReply,
  readLeaseReply,
  readNoteReply,
  readTakeReply,
} from './replies.js';
import {
  multiCommand,
  pipelineScripts,
  type RedisClient,
  runScript,
  type ScriptCall,
} from './run-script.js';
import {
  actuateScript,
  heartbeatScript,
  inflightScript,
  leaseScript,
  noteScript,
  takeScript,
} from './scripts.gen.js';

export { readTakeReply } from './replies.js';
export type { RedisClient } from './run-script.js';

/** Most takes of one call; the caller splits longer batches. */
export const MAX_TAKES = 512;

/** Decides up to 512 takes of one limiter in order, in one call. */
export async function take(redis: RedisClient, call: TakeCall): Promise<TakeReply> {
  return readTakeReply(await runScript(redis, takeCall(call)));
}

/** Many take calls in one pipeline: healed from NOSCRIPT as one call is, each charged once. */
export async function takePipelined(
  redis: RedisClient,
  calls: readonly TakeCall[],
): Promise<TakeReply[]> {
  return (await pipelineScripts(redis, calls.map(takeCall))).map(readTakeReply);
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
  const { keys, processId, need, reports, fallback } = call;
  return readInFlightReply(
    await runScript(redis, {
      script: inflightScript,
      keys: [keys.params, keys.inFlight],
      args: [time(call.nowUs), processId, need, reports ? '1' : '0', fallbackText(fallback)],
    }),
  );
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

/** Appends a note to the audit log. */
export async function note(
  redis: RedisClient,
  call: { keys: LimiterKeys; entry: SealedEntry; nowUs?: number },
): Promise<NoteReply> {
  const { keys, entry } = call;
  return readNoteReply(
    await runScript(redis, {
      script: noteScript,
      keys: [keys.audit, keys.params],
      args: [entry.prev, entry.hash, entry.body],
    }),
  );
}

/** Keys and arguments of a take, as `docs/contract.md` lays them down. */
export function takeCall(call: TakeCall): ScriptCall {
  const { keys, takes, chargeByUs, shadow, fallback } = call;
  const bucket = shadow ? keys.shadowBucket : keys.bucket;
  const names: string[] = [keys.params, bucket];
  const args: (string | number)[] = [
    time(call.nowUs),
    chargeByUs === 'any' ? '' : (chargeByUs ?? '0'),
    shadow ? '1' : '0',
    fallbackText(fallback),
  ];
  for (const each of takes) {
    const { subject } = each;
    if (subject === null) names.push(bucket);
    else names.push(shadow ? keys.shadowSubjectBucket(subject) : keys.subjectBucket(subject));
    args.push(takeText(each));
  }
  return { script: takeScript as ScriptCall['script'], keys: names, args };
}

function takeText({ cost, priority }: TakeRequest): string {
  const tokens = cost === 1 ? '1' : plainDecimal(cost);
  return priority === 'default' ? tokens : `${tokens} ${priority}`;
}

/** `1e-7` and `1e21` are no plain decimals: the script refuses them, and so refuses what has no ≤ 6 decimals. */
function plainDecimal(cost: number): string {
  return Object.is(cost, -0) ? '-0' : String(cost);
}

const fallbackTexts = new WeakMap<FallbackNumbers, string>();

/** Numbers for missing params, as one text; callers keep one object for as long as its numbers hold. */
function fallbackText(numbers: FallbackNumbers): string {
  let text = fallbackTexts.get(numbers);
  if (text === undefined) {
    const { rate, capacity, inFlightMax, subjectRate, subjectCapacity } = numbers;
    text = `${rate} ${capacity} ${inFlightMax} ${subjectRate} ${subjectCapacity}`;
    fallbackTexts.set(numbers, text);
  }
  return text;
}

function time(nowUs: number | undefined): number | string {
  return nowUs ?? '';
}
