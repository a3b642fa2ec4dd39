/** Decision samples for who asks for them (`flyball tail`): an even share, bounded, sent once a second. Stage: enforce. */
import { createHmac } from 'node:crypto';
import type { Clock } from '../clock.js';
import {
  type DecisionSample,
  readAsk,
  SAMPLE_FIELD,
  SAMPLES_KEPT,
  SAMPLES_TTL_MS,
} from '../redis/tail-fields.js';
import type { KeyFinder } from './address.js';
import type { Decision } from './decision.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { TakeWish } from './pending-take.js';
import type { RedisTime } from './redis-time.js';
import { refusalOf, type Warn } from './warnings.js';

/** Most samples of one process and limiter a second; the rest is dropped, evenly, and told by the gaps in `n`. */
const MOST_A_BEAT = 50;
const DEADLINE_MS = 500;
/** Characters of a subject that are sent. */
const SUBJECT_LENGTH = 256;

export interface Samples {
  /** Does anybody ask now? Only then is `decided` called. */
  readonly asked: boolean;
  decided(decision: Decision, wish: Wish, tookMs: number): void;
  /** Once a second: sends what was chosen, looks who asks. Never rejects. */
  beat(): Promise<void>;
}

type Wish = Pick<TakeWish, 'cost' | 'priority'>;

export interface SamplesOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  clock: Clock;
  view: { readonly mode: DecisionSample['mode'] };
  processId: string;
  warn: Warn;
  random?: () => number;
}

export function createSamples(options: SamplesOptions): Samples {
  const { redis, finder, time, clock, view, processId, random = Math.random } = options;
  let ratio = 0;
  let salt = '';
  let chosen = 0;
  let sinceBeat = 0;
  let kept: DecisionSample[] = [];

  function keep(decision: Decision, wish: Wish, tookMs: number, u: number, at: number): void {
    const { subject } = decision;
    kept[at] = {
      atMs: Math.floor(time.nowMs(clock.monotonicMs()) ?? clock.nowMs()),
      process: processId,
      n: chosen,
      u,
      subject: subject === null ? null : salt === '' ? cut(subject) : hashOf(subject, salt),
      hashed: subject !== null && salt !== '',
      cost: wish.cost,
      priority: wish.priority,
      allowed: decision.allowed,
      wouldAllow: decision.wouldAllow,
      reason: decision.reason,
      limit: decision.limit,
      remaining: decision.remaining,
      retryAfterMs: decision.retryAfterMs,
      delayMs: decision.delayMs,
      source: decision.source,
      epoch: decision.epoch,
      revision: decision.revision,
      state: decision.state,
      mode: view.mode,
      tookMs: Math.round(tookMs * 100) / 100,
    };
  }

  function follow(asks: Record<string, string>, nowMs: number): void {
    const all = Object.keys(asks)
      .sort()
      .flatMap((asker) => readAsk(asks[asker]!, nowMs) ?? []);
    // One asker who wants hashes is enough: no subject leaves as it is meanwhile.
    salt = all.find((ask) => ask.salt !== '')?.salt ?? '';
    ratio = Math.max(0, ...all.map((ask) => ask.ratio));
    if (ratio === 0) chosen = 0;
  }

  async function send(): Promise<void> {
    const { keys } = finder;
    if (keys === null) return;
    const batch = kept;
    kept = [];
    sinceBeat = 0;
    const pipeline = redis.pipeline();
    for (const sample of batch) {
      const text = JSON.stringify(sample);
      pipeline.xadd(keys.samples, 'MAXLEN', '~', SAMPLES_KEPT, '*', SAMPLE_FIELD, text);
    }
    if (batch.length > 0) pipeline.pexpire(keys.samples, SAMPLES_TTL_MS);
    pipeline.hgetall(keys.tail);
    const replies = (await pipeline.exec()) ?? [];
    const failed = replies.find(([error]) => error)?.[0];
    if (failed) throw failed;
    follow(replies.at(-1)![1] as Record<string, string>, time.nowMs(clock.monotonicMs()) ?? 0);
  }

  return {
    get asked() {
      return ratio > 0;
    },
    decided(decision, wish, tookMs) {
      const u = random();
      if (u >= ratio) return;
      chosen += 1;
      sinceBeat += 1;
      // Each of this second has the same chance to stay.
      const at = sinceBeat <= MOST_A_BEAT ? kept.length : Math.floor(random() * sinceBeat);
      if (at < MOST_A_BEAT) keep(decision, wish, tookMs, u, at);
    },
    async beat() {
      const link = options.link();
      if (!link.up || finder.keys === null) return;
      let refused: string | null = 'no answer';
      try {
        refused = await link.within(clock.monotonicMs() + DEADLINE_MS, () => refusalOf(send()));
        if (refused === null) return;
        options.warn(
          'FLYBALL_W_TAIL_REFUSED',
          `limiter ${finder.keys.name}: \`flyball tail\` sees nothing of this process (${refused}). Give the service the rights of deploy/redis/users.acl.`,
        );
      } catch {
        // The link has counted it.
      } finally {
        // Nobody can be heard now: an asker that went meanwhile must not be served on.
        if (refused !== null) {
          ratio = 0;
          kept = [];
        }
      }
    },
  };
}

function cut(subject: string): string {
  return subject.length <= SUBJECT_LENGTH ? subject : `${subject.slice(0, SUBJECT_LENGTH)}…`;
}

/** The same subject has the same hash for one asker; without the salt nobody can try subjects out. */
function hashOf(subject: string, salt: string): string {
  return createHmac('sha256', salt).update(subject).digest('base64url').slice(0, 16);
}
