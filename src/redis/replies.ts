/** What the scripts answer, read into the types of calls.ts. Stage: enforce, actuate. */
import { FlyballError } from '../errors.js';
import type {
  ActuateReply,
  HeartbeatReply,
  InFlightReply,
  InForce,
  LeaseReply,
  NoteReply,
  RefusalReason,
  SlotsReply,
  TakeAnswer,
  TakeReason,
  TakeReply,
} from './calls.js';
import type { LimiterState, Mode } from './params.js';

/** In the order of the numbers that `take` answers with. */
export const TAKE_REASONS = [
  'ok',
  'off',
  'rate',
  'subject',
  'breaker_open',
  'probe_budget',
  'reserve',
  'cost_exceeds_capacity',
  'bad_cost',
  'blocked',
  'exempt',
  'fair_share',
] as const satisfies readonly TakeReason[];

const TAKE_STATUS = ['ok', 'late', 'mode', 'rules'] as const;
/** Added to a reason where the bucket that newcomers share stood in for the subject's own. */
const SHARED = 32;
const EXEMPT = TAKE_REASONS.indexOf('exempt');
/** Texts of what is in force change a few times a minute, replies come by the thousand. */
const inForceByText = new Map<string, InForce>();
const IN_FORCE_KEPT = 256;

/** Answers as numbers in the array, or packed: `[status, nowUs, inForce, bytes]` with the strings as buffers. */
export function readTakeReply(raw: unknown): TakeReply {
  const reply = raw as (number | string | Buffer)[];
  const status = Array.isArray(reply) ? TAKE_STATUS[reply[0] as number] : undefined;
  if (status === undefined) throw unreadable('take', raw);
  const text = reply[2] as string | Buffer;
  const packed = reply[3];
  return {
    status,
    nowUs: reply[1] as number,
    inForce: readInForce(typeof text === 'string' ? text : text.toString('latin1')),
    answers: packed instanceof Uint8Array ? unpacked(packed) : listed(reply as number[]),
  };
}

function listed(reply: readonly number[]): TakeAnswer[] {
  const answers: TakeAnswer[] = [];
  for (let i = 3; i < reply.length; i += 3) {
    answers.push(answerOf(reply[i]!, reply[i + 1]!, reply[i + 2]!));
  }
  return answers;
}

const DOUBLE = 8;

function unpacked({ buffer, byteOffset, byteLength }: Uint8Array): TakeAnswer[] {
  const doubles = new DataView(buffer, byteOffset, byteLength);
  const answers: TakeAnswer[] = [];
  for (let at = 0; at < byteLength; at += 3 * DOUBLE) {
    const code = doubles.getFloat64(at, true);
    const remaining = doubles.getFloat64(at + DOUBLE, true);
    answers.push(answerOf(code, remaining, doubles.getFloat64(at + 2 * DOUBLE, true)));
  }
  return answers;
}

function answerOf(code: number, remaining: number, retry: number): TakeAnswer {
  if (code >= SHARED) return { ...answerOf(code - SHARED, remaining, retry), shared: true };
  const allowed = code <= 1 || code === EXEMPT;
  const answer: TakeAnswer = {
    allowed,
    reason: TAKE_REASONS[code]!,
    remaining,
    retryAfterMs: retry < 0 ? null : allowed ? 0 : retry,
  };
  // Pacing tells an admitted take how long it waits.
  if (allowed && retry > 0) answer.delayMs = retry;
  return answer;
}

/** `managed epoch revision generation mode state gliding rate capacity inFlightMax subjectRate subjectCapacity` */
export function readInForce(text: string): InForce {
  const known = inForceByText.get(text);
  if (known !== undefined) return known;
  const parts = text.split(' ');
  if (parts.length !== 12) throw unreadable('inForce', text);
  const number = (index: number) => Number(parts[index]);
  const inForce: InForce = Object.freeze({
    managed: parts[0] === '1',
    epoch: number(1),
    revision: number(2),
    generation: number(3),
    mode: parts[4] as Mode,
    state: parts[5] as LimiterState,
    gliding: parts[6] === '1',
    rate: number(7),
    capacity: number(8),
    inFlightMax: number(9),
    subjectRate: number(10),
    subjectCapacity: number(11),
  });
  if (inForceByText.size >= IN_FORCE_KEPT) inForceByText.clear();
  inForceByText.set(text, inForce);
  return inForce;
}

export function readInFlightReply(raw: unknown): InFlightReply {
  const [nowUs, text, share, fair, processes, reporting, places] = raw as string[];
  const part = (value: string | undefined) =>
    Number(value) < 0 ? Number.POSITIVE_INFINITY : Number(value);
  return {
    nowUs: Number(nowUs),
    inForce: readInForce(text ?? ''),
    share: part(share),
    fair: part(fair),
    processes: Number(processes),
    reporting: Number(reporting),
    places: places === '1',
  };
}

export function readSlotsReply(raw: unknown): SlotsReply {
  const [nowUs, cap, held, ...done] = raw as (string | number)[];
  return {
    nowUs: Number(nowUs),
    cap: Number(cap),
    held: Number(held),
    done: done.map((each) => each === 1),
  };
}

export function readActuateReply(raw: unknown): ActuateReply {
  const reply = raw as string[];
  if (reply[0] === 'ok') {
    return {
      status: 'ok',
      nowUs: Number(reply[1]),
      epoch: Number(reply[2]),
      revision: Number(reply[3]),
      streamId: reply[4] ?? '',
    };
  }
  if (reply[0] !== 'refused') throw unreadable('actuate', raw);
  return {
    status: 'refused',
    reason: reply[1] as RefusalReason,
    detail: reply[2] ?? '',
    nowUs: Number(reply[3]),
    epoch: Number(reply[4]),
    revision: Number(reply[5]),
    head: reply[6] ?? '',
  };
}

export function readHeartbeatReply(raw: unknown): HeartbeatReply {
  const reply = raw as string[];
  if (reply[0] === 'ok') {
    return {
      status: 'ok',
      nowUs: Number(reply[1]),
      validUntil: Number(reply[2]),
      epoch: Number(reply[3]),
      revision: Number(reply[4]),
    };
  }
  if (reply[0] !== 'refused') throw unreadable('heartbeat', raw);
  const reason = reply[1] as Extract<HeartbeatReply, { status: 'refused' }>['reason'];
  return { status: 'refused', reason, nowUs: Number(reply[2]) };
}

export function readLeaseReply(raw: unknown): LeaseReply {
  const [status, ...rest] = raw as string[];
  if (status === 'released') return { status, nowUs: Number(rest[0]) };
  const owner = rest[0] ?? '';
  const token = Number(rest[1]);
  if (status === 'held') return { status, owner, token, nowUs: Number(rest[2]) };
  if (status !== 'other') throw unreadable('lease', raw);
  return { status, owner, token, ttlMs: Number(rest[2]), nowUs: Number(rest[3]) };
}

export function readNoteReply(raw: unknown): NoteReply {
  const reply = raw as string[];
  if (reply[0] === 'ok') return { status: 'ok', streamId: reply[1] ?? '' };
  if (reply[0] !== 'refused') throw unreadable('note', raw);
  return { status: 'refused', reason: reply[1] === 'trim' ? 'trim' : 'head', head: reply[2] ?? '' };
}

function unreadable(script: string, raw: unknown): FlyballError {
  return new FlyballError(
    'FLYBALL_E_SCRIPT_REPLY',
    `the reply of ${script} cannot be read: ${JSON.stringify(raw)?.slice(0, 200)}. Do SDK and daemon run versions that fit each other?`,
  );
}
