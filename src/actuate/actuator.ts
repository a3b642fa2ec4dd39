/** The one way to change what is in force: seal an audit entry on the newest head and hand both to one script call. Stage: actuate. */
import type { DecideState, GuardVerdict, Sample } from '../decide/types.js';
import type { FlyballError } from '../errors.js';
import {
  type ActuateCall,
  type ActuateReply,
  type Authority,
  GENESIS_HASH,
  type NoteReply,
  type Trim,
} from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { type ParamChange, type Params, parseParams } from '../redis/params.js';
import { readHashes } from '../redis/read-hashes.js';
import { actuate, note, type RedisClient } from '../redis/scripts.js';
import { overrideSubject, type SubjectOverride } from '../redis/subject-override.js';
import { type Actor, type EntryBody, type EntryValues, sealEntry } from './entry.js';
import { onceDespiteLoss } from './lost-reply.js';

export type { RedisClient } from '../redis/scripts.js';

/** How often a write is sealed again when only the audit head has moved (notes race with it, rarely). */
const HEAD_ATTEMPTS = 5;

/** All that a writer knows beforehand; the script adds the token clocks, floors and the stream id. */
export interface WriteRequest {
  authority: Authority;
  /** What the writer saw; on `create`, what the new params get. */
  expected: { epoch: number; revision: number };
  create?: boolean;
  /** A higher epoch that begins with this write: Redis was found to have lost writes. */
  newEpoch?: number;
  change: ParamChange;
  /** What a person says of one subject, in place of a change of params; null takes it back. */
  override?: { subject: string; to: Omit<SubjectOverride, 'revision'> | null };
  cause: ActuateCall['cause'];
  refloor?: 'empty' | 'full' | number;
  actor: Actor;
  /** Reason code, e.g. `law_cut`, `rollback`. */
  reason: string;
  sentence: string;
  before: EntryValues | null;
  after: EntryValues | null;
  policyHash: string;
  policy?: { hash: string; json: string };
  /** `adaptive@1`; absent for a person's verb. */
  law?: string;
  sample?: Sample;
  stateBefore?: DecideState;
  verdicts?: GuardVerdict[];
  terms?: Record<string, number>;
  detail?: Record<string, unknown>;
  /** The law's state after this decision, JSON of at most 4 KB. */
  checkpoint?: string;
}

export interface WriteOptions {
  leaseMs: number;
  /** The writer's wall time, ms: what the entry says. */
  nowMs: number;
  /** Tests only: Redis time (µs) to use instead of TIME. */
  nowUs?: number;
}

/** What a note says; it changes no params and needs no lease. */
export type NoteRequest = Pick<
  WriteRequest,
  | 'expected'
  | 'actor'
  | 'reason'
  | 'sentence'
  | 'before'
  | 'after'
  | 'policyHash'
  | 'law'
  | 'sample'
  | 'stateBefore'
  | 'verdicts'
  | 'terms'
  | 'detail'
>;

/**
 * Writes params and exactly one `change` entry, atomically. A head that moved alone is sealed again and
 * retried; a moved revision, a lost lease, a hold or a bound comes back as `refused`: the caller decides again.
 * A reply that was lost is looked up in the log: the write takes effect at most once.
 */
export async function write(
  redis: RedisClient,
  address: LimiterAddress,
  request: WriteRequest,
  options: WriteOptions,
): Promise<ActuateReply> {
  const keys = limiterKeys(address);
  const { create = false, expected, newEpoch, override } = request;
  const result = {
    epoch: newEpoch ?? expected.epoch,
    revision: create ? expected.revision : expected.revision + 1,
  };
  const body = entryBody('change', address.name, request, result, options.nowMs);
  const { subject = '', to = null } = override ?? {};
  const overridden = ({ entry, nowUs }: ActuateCall) =>
    overrideSubject(redis, {
      ...{ keys, expected, subject, entry },
      override: to === null ? null : { ...to, revision: result.revision },
      ...(nowUs === undefined ? {} : { nowUs }),
    });
  let head = await readHead(redis, address);
  for (let attempt = 1; ; attempt++) {
    const call: ActuateCall = {
      keys,
      authority: request.authority,
      expected,
      create,
      ...(newEpoch === undefined ? {} : { newEpoch }),
      change: request.change,
      cause: request.cause,
      ...(request.refloor === undefined ? {} : { refloor: request.refloor }),
      entry: sealEntry(head, body),
      ...(request.checkpoint === undefined ? {} : { checkpoint: request.checkpoint }),
      leaseMs: options.leaseMs,
      ...(request.policy === undefined ? {} : { policy: request.policy }),
      ...(options.nowUs === undefined ? {} : { nowUs: options.nowUs }),
    };
    const send = () => (override === undefined ? actuate(redis, call) : overridden(call));
    const reply = await onceDespiteLoss(
      redis,
      address,
      call.entry,
      send,
      (streamId): ActuateReply => ({
        status: 'ok',
        nowUs: Number.parseInt(streamId, 10) * 1000,
        ...result,
        streamId,
      }),
    );
    if (reply.status === 'ok' || reply.reason !== 'head' || attempt >= HEAD_ATTEMPTS) return reply;
    head = reply.head;
  }
}

/**
 * Writes one `note` entry: a refusal, a recommendation, drift, or a trim, which it carries out. Retries a moved head,
 * changes nothing else.
 */
export async function writeNote(
  redis: RedisClient,
  address: LimiterAddress,
  { trim, ...request }: NoteRequest & { trim?: Trim },
  options: Pick<WriteOptions, 'nowMs' | 'nowUs'>,
): Promise<NoteReply> {
  const keys = limiterKeys(address);
  const body = entryBody('note', address.name, request, request.expected, options.nowMs);
  let head = await readHead(redis, address);
  for (let attempt = 1; ; attempt++) {
    const entry = sealEntry(head, body);
    const nowUs = options.nowUs === undefined ? {} : { nowUs: options.nowUs };
    const trims = trim === undefined ? {} : { trim };
    const send = () => note(redis, { keys, entry, ...trims, ...nowUs });
    const reply = await onceDespiteLoss(
      redis,
      address,
      entry,
      send,
      (streamId): NoteReply => ({
        status: 'ok',
        streamId,
      }),
    );
    if (reply.status === 'ok' || reply.reason !== 'head' || attempt >= HEAD_ATTEMPTS) return reply;
    head = reply.head;
  }
}

/**
 * The params as stored (null when missing) and the Redis time of the node that holds them. Params that cannot be
 * read are an error, or `unreadable` for an owner: the scripts take them for missing, so they can be created anew.
 */
export async function readParams(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<{ params: Params | null; nowUs: number }> {
  const { params, nowUs, unreadable } = await readParamsAnyhow(redis, address);
  if (unreadable !== null) throw unreadable;
  return { params, nowUs };
}

export async function readParamsAnyhow(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<{ params: Params | null; nowUs: number; unreadable: FlyballError | null }> {
  const keys = limiterKeys(address);
  const { hashes, nowUs } = await readHashes(redis, keys, [keys.params]);
  try {
    return { params: parseParams(hashes[0]!), nowUs, unreadable: null };
  } catch (error) {
    return { params: null, nowUs, unreadable: error as FlyballError };
  }
}

/** The hash of the newest audit entry, from which the next one is sealed; 64 zeros when there is none. */
export async function readHead(redis: RedisClient, address: LimiterAddress): Promise<string> {
  const newest = await redis.xrevrange(limiterKeys(address).audit, '+', '-', 'COUNT', 1);
  const fields = newest[0]?.[1];
  if (fields === undefined) return GENESIS_HASH;
  const at = fields.indexOf('hash');
  return at % 2 === 0 ? (fields[at + 1] ?? GENESIS_HASH) : GENESIS_HASH;
}

/** The numbers that an entry's before and after name. */
export function entryValues(
  params: Pick<Params, 'mode' | 'state' | 'rate' | 'capacity' | 'inFlightMax'>,
): EntryValues {
  const { mode, state, rate, capacity, inFlightMax } = params;
  return { mode, state, rate, capacity, inFlightMax };
}

function entryBody(
  kind: 'change' | 'note',
  limiter: string,
  request: NoteRequest,
  at: { epoch: number; revision: number },
  atMs: number,
): EntryBody {
  const { actor, reason, sentence, before, after, policyHash } = request;
  const body: EntryBody = {
    v: 1,
    kind,
    limiter,
    epoch: at.epoch,
    revision: at.revision,
    atMs,
    actor,
    reason,
    sentence,
    before,
    after,
    policyHash,
  };
  if (request.law !== undefined) body.law = request.law;
  if (request.sample !== undefined) body.sample = request.sample;
  if (request.stateBefore !== undefined) body.stateBefore = request.stateBefore;
  if (request.verdicts !== undefined) body.verdicts = request.verdicts;
  if (request.terms !== undefined) body.terms = request.terms;
  if (request.detail !== undefined) body.detail = request.detail;
  return body;
}
