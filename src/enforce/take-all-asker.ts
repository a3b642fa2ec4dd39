/** Sends the sets of takes of one event-loop turn to Redis in one call, within their deadline. Stage: enforce. */
import { FlyballError } from '../errors.js';
import type { InForce, TakeAnswer, TakeRequest } from '../redis/calls.js';
import type { LimiterKeys } from '../redis/keys.js';
import { type TogetherReply, together } from '../redis/together.js';
import { onAbort } from './abort.js';
import type { LimiterParts } from './limiter-parts.js';
import { returnMsOf } from './taker.js';

/** Bounds the time one call holds Redis: about 1 ms. */
const MAX_TAKES = 512;

export interface SetAnswer {
  /** What each limiter alone said, and its numbers in force. */
  answers: TakeAnswer[];
  inForce: InForce[];
}

export interface SetAsker {
  /** null: Redis did not answer in time. Rejects only when the signal says stop; before the call, nothing is taken. */
  ask(
    takes: readonly TakeRequest[],
    deadlineAtMs: number,
    signal: AbortSignal | undefined,
  ): Promise<SetAnswer | null>;
  /** Why these limiters cannot be decided in one call, by what Redis says of them; null: they can. */
  fault(): Promise<FlyballError | null>;
}

interface Asked {
  takes: readonly TakeRequest[];
  signal: AbortSignal | undefined;
  answered(answer: SetAnswer | null): void;
}

export function createSetAsker(
  members: readonly (LimiterParts & { readonly apart?: boolean })[],
  deadlineMs: number,
): SetAsker {
  const lead = members[0]!;
  const { clock } = lead;
  const most = Math.floor(MAX_TAKES / members.length);
  const returnMs = returnMsOf(deadlineMs);
  const shadow = members.map(() => false);
  let queue: Asked[] = [];
  let deadlineAtMs = 0;

  function flush() {
    const batch = queue.filter(({ signal }) => !signal?.aborted);
    queue = [];
    if (batch.length > 0) void send(batch, deadlineAtMs);
  }

  async function send(batch: Asked[], deadlineAtMs: number) {
    let reply: TogetherReply | null = null;
    try {
      reply = await decide(batch, deadlineAtMs);
    } catch {
      for (const { stats } of members) stats.redisErrors += 1;
    }
    for (const [i, { answered }] of batch.entries()) {
      answered(reply && { answers: reply.sets[i]!, inForce: reply.inForce });
    }
  }

  /** At most one call to learn the time, one repeated for being late, one for other sets of buckets. */
  async function decide(batch: Asked[], deadlineAtMs: number): Promise<TogetherReply> {
    const sets = batch.map(({ takes }) => takes);
    const keys = knownKeys() ?? (await within(deadlineAtMs, findKeys));
    if (!shareSlot(keys)) throw warned(slotFault(keys));
    let mayLearn = true;
    let mayBeLate = true;
    let mayChangeMode = true;
    for (;;) {
      const chargeByUs = lead.time.latestAt(deadlineAtMs - returnMs);
      const reply = await within(deadlineAtMs, () => call(keys, sets, chargeByUs));
      if (reply.status === 'ok') return reply;
      if (reply.status === 'mode' && mayChangeMode) mayChangeMode = false;
      else if (chargeByUs === null && mayLearn) mayLearn = false;
      else if (chargeByUs !== null && mayBeLate) mayBeLate = false;
      else throw new FlyballError('FLYBALL_E_ENFORCE_LATE', 'Redis answered too late to charge');
    }
  }

  function within<T>(deadlineAtMs: number, call: () => Promise<T>): Promise<T> {
    return lead.link.within(deadlineAtMs, call);
  }

  async function call(
    keys: readonly LimiterKeys[],
    sets: (readonly TakeRequest[])[],
    chargeByUs: number | null,
  ): Promise<TogetherReply> {
    const sentMs = clock.monotonicMs();
    for (const { stats } of members) stats.calls += 1;
    const reply = await together(lead.redis, {
      limiters: members.map(({ view, apart = false }, i) => ({
        keys: keys[i]!,
        fallback: view.fallback(),
        shadow: shadow[i]!,
        apart,
      })),
      sets,
      chargeByUs,
    });
    const receivedMs = clock.monotonicMs();
    for (const [i, member] of members.entries()) {
      const inForce = reply.inForce[i]!;
      member.time.learn(reply.nowUs, sentMs, receivedMs);
      shadow[i] = inForce.mode === 'shadow';
      if (reply.status === 'late' && chargeByUs !== null) member.stats.late += 1;
      member.onReply(inForce);
      if (algorithmOf(member) !== 'token-bucket') warned(algorithmFault(member));
    }
    return reply;
  }

  /** After the first call; then nothing more is awaited of Redis. */
  function knownKeys(): LimiterKeys[] | null {
    const keys: LimiterKeys[] = [];
    for (const { finder } of members) if (finder.keys) keys.push(finder.keys);
    return keys.length === members.length ? keys : null;
  }

  async function findKeys(): Promise<LimiterKeys[]> {
    return Promise.all(members.map(async ({ finder }) => finder.keys ?? (await finder.find())));
  }

  /** Said by the lead, once a minute. */
  function warned(fault: FlyballError): FlyballError {
    lead.warn('FLYBALL_W_TAKE_ALL', fault.message);
    return fault;
  }

  function slotFault(keys: readonly LimiterKeys[]): FlyballError {
    const where = keys.map((each) => `${each.name} lies on {${tagOf(each)}}`).join(', ');
    return new FlyballError(
      'FLYBALL_E_ENFORCE_TAKE_ALL',
      `takeAll: by the registry in Redis ${where}, so one call cannot decide them. Adopt their policies with one group.`,
    );
  }

  return {
    ask(takes, itsDeadlineAtMs, signal) {
      return new Promise((ok, no) => {
        signal?.throwIfAborted();
        const leave = signal && onAbort(signal, () => no(signal.reason));
        const answered = (answer: SetAnswer | null) => {
          leave?.();
          ok(answer);
        };
        if (queue.length === 0) {
          deadlineAtMs = itsDeadlineAtMs;
          setImmediate(flush);
        }
        deadlineAtMs = Math.min(deadlineAtMs, itsDeadlineAtMs);
        queue.push({ takes, signal, answered });
        if (queue.length >= most) flush();
      });
    },
    async fault() {
      await Promise.all(members.map(({ adopted }) => adopted.firstRead()));
      const keys = await Promise.all(members.map(({ finder }) => finder.find()));
      if (!shareSlot(keys)) return slotFault(keys);
      const other = members.find((each) => algorithmOf(each) !== 'token-bucket');
      return other ? algorithmFault(other) : null;
    },
  };
}

const tagOf = ({ params }: LimiterKeys) => /\{([^}]*)\}/.exec(params)?.[1];
const shareSlot = (keys: readonly LimiterKeys[]) => new Set(keys.map(tagOf)).size <= 1;
const algorithmOf = (member: LimiterParts) => member.terms()?.algorithm ?? 'token-bucket';

function algorithmFault(member: LimiterParts): FlyballError {
  return new FlyballError(
    'FLYBALL_E_ENFORCE_TAKE_ALL',
    `takeAll: limiter ${member.resolved.name} has algorithm '${algorithmOf(member)}'; here it is decided by a bucket of its rate and capacity. Adopt its policy with 'token-bucket', or take from it by itself.`,
  );
}
