/** `draw: 'block'`: tokens drawn in blocks sized to recent use, and takes decided from them without a call. Stage: enforce. */
import type { InForce } from '../redis/calls.js';
import { type DrawReply, draw, MAX_DRAWS } from '../redis/draw.js';
import { BLOCK_LIFE_MS, BlockPool, mostOf } from './block-pool.js';
import type { CallParts } from './call-parts.js';
import type { TakeWish } from './pending-take.js';
import { sendsAgain } from './resends.js';

/** Subjects whose use is told apart; while so many are busy, others ask Redis each time. */
const MAX_SUBJECTS = 1_000;
/** Longer subjects ask Redis each time: what is kept here is bounded in bytes too. */
const LONGEST_SUBJECT = 1_024;
/** What is over goes back within this. */
const SWEEP_MS = 125;
/** Where Redis gives no blocks, it is asked again after this. */
const OFF_MS = 1_000;

export interface Blocks {
  /** Whole tokens that are left after this take, decided here; -1: this process holds none for it, ask Redis. */
  take(wish: TakeWish, nowMs: number): number;
  /** Other numbers are in force: what was drawn under the old ones goes back. */
  end(): void;
  /** Another server may answer: nobody knows what was drawn from it. */
  forget(): void;
  /** Gives back what is left. */
  close(): Promise<void>;
}

export interface BlocksOptions extends CallParts {
  /** Is this the choice, and the algorithm one that blocks are drawn from? */
  wanted: () => boolean;
  /** Tokens were drawn: an outage that begins now must not find them here again. */
  onDrawn: (tokens: number, nowMs: number) => void;
  onReply: (inForce: InForce) => void;
}

export function createBlocks(options: BlocksOptions): Blocks {
  const { redis, finder, time, view, stats, clock, deadlineMs } = options;
  const total = new BlockPool(null);
  const subjects = new Map<string, BlockPool>();
  const mayReturn = !sendsAgain(redis);
  let due: BlockPool[] = [];
  /** Blocks of an earlier turn of it are over. */
  let turn = 0;
  let epoch = 0;
  let offUntilMs = 0;
  let on = false;
  let timer: ReturnType<typeof setInterval> | undefined;
  let closed = false;
  /** Draws that are not answered. */
  const underWay = new Set<Promise<void>>();

  function take({ subject, cost, priority }: TakeWish, nowMs: number): number {
    const inForce = view.current;
    if (inForce === null || !(on || isWanted())) return -1;
    if (priority === 'sheddable' || cost % 1 !== 0 || nowMs < offUntilMs) return -1;
    let own: BlockPool | null = null;
    if (subject !== null && inForce.subjectRate >= 0) {
      own = subjects.get(subject) ?? added(subject);
      if (own === null) return -1;
      own.use(cost, nowMs);
      if (!own.holds(cost, nowMs)) return missing(own);
    }
    total.use(cost, nowMs);
    if (!total.holds(cost, nowMs)) return missing(total);
    total.tokens -= cost;
    if (total.wantsMore || total.isEnding(nowMs)) ask(total);
    const left = total.left + total.tokens;
    if (own === null) return left;
    own.tokens -= cost;
    if (own.wantsMore || own.isEnding(nowMs)) ask(own);
    return Math.min(left, own.left + own.tokens);
  }

  /** Asked anew at each draw and each revision, not on each take. */
  function isWanted(): boolean {
    on = options.wanted();
    return on;
  }

  function missing(pool: BlockPool): number {
    if (!pool.asking) ask(pool);
    return -1;
  }

  function added(subject: string): BlockPool | null {
    if (subjects.size >= MAX_SUBJECTS || subject.length > LONGEST_SUBJECT) return null;
    const pool = new BlockPool(subject);
    subjects.set(subject, pool);
    return pool;
  }

  function ask(pool: BlockPool): void {
    pool.asking = true;
    due.push(pool);
    if (due.length === 1) setImmediate(send);
    if (timer === undefined && !closed) timer = setInterval(sweep, SWEEP_MS).unref();
  }

  function send(): void {
    const pools = due;
    due = [];
    void inParts(pools);
  }

  async function inParts(pools: readonly BlockPool[]): Promise<void> {
    const parts: Promise<void>[] = [];
    for (let i = 0; i < pools.length; i += MAX_DRAWS - 1) {
      const part = askFor(pools.slice(i, i + MAX_DRAWS - 1));
      underWay.add(part);
      parts.push(part.finally(() => underWay.delete(part)));
    }
    await Promise.all(parts);
  }

  function askFor(pools: BlockPool[]): Promise<void> {
    return new Promise((settled) => {
      const inForce = view.current;
      const nowMs = clock.monotonicMs();
      const wants = new Map<BlockPool, number>();
      const mayDraw = isWanted() && nowMs >= offUntilMs;
      for (const pool of pools) {
        pool.asking = false;
        const capacity = pool === total ? inForce?.capacity : inForce?.subjectCapacity;
        const want = mayDraw ? pool.wanted(mostOf(capacity ?? 0, view.processes), nowMs) : 0;
        if (want > 0 || pool.back > 0) wants.set(pool, want);
      }
      const link = options.link();
      if (wants.size === 0 || inForce === null || !link.up) return settled();
      const asked = [...wants.keys()].filter((pool) => pool !== total);
      const part = (pool: BlockPool) => {
        const back = mayReturn ? pool.back : 0;
        pool.back = 0;
        pool.asking = wants.get(pool) !== 0;
        return { want: wants.get(pool) ?? 0, back };
      };
      const call = {
        epoch,
        total: wants.has(total) ? part(total) : { want: 0, back: 0 },
        subjects: asked.map((pool) => ({ subject: pool.subject!, ...part(pool) })),
      };
      const turnThen = turn;
      link.ask<DrawReply>(nowMs + deadlineMs, {
        start() {
          stats.calls += 1;
          const { keys } = finder;
          if (keys !== null) return draw(redis, { keys, ...call });
          return finder.find().then((found) => draw(redis, { keys: found, ...call }));
        },
        answered: (reply, late) => {
          for (const pool of wants.keys()) pool.asking = false;
          const receivedMs = clock.monotonicMs();
          time.learn(reply.nowUs, nowMs, receivedMs);
          if (reply.inForce) options.onReply(reply.inForce);
          if (reply.drawn === null || reply.inForce === null) offUntilMs = receivedMs + OFF_MS;
          else {
            const current = !late && turnThen === turn && newestOf(reply.inForce);
            // Of an epoch that is over nothing goes back.
            const mayGoBack = view.current?.epoch === reply.inForce.epoch;
            if (mayGoBack) epoch = reply.inForce.epoch;
            for (const [i, { given, left }] of reply.drawn.entries()) {
              const pool = i === 0 ? total : asked[i - 1]!;
              if (current) pool.receive(given, left, nowMs + BLOCK_LIFE_MS);
              else if (mayGoBack) pool.back += given;
              if (i === 0 && given > 0) options.onDrawn(given, receivedMs);
            }
          }
          settled();
        },
        failed() {
          for (const pool of wants.keys()) pool.asking = false;
          stats.redisErrors += 1;
          settled();
        },
      });
    });
  }

  /** An answer that was overtaken by a newer revision draws by numbers that no longer hold. */
  function newestOf(inForce: InForce): boolean {
    const { current } = view;
    return current?.epoch === inForce.epoch && current.revision === inForce.revision;
  }

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    let idle = total.sweep(nowMs);
    if (total.back > 0 && !total.asking) ask(total);
    for (const [subject, pool] of subjects) {
      if (!pool.sweep(nowMs)) idle = false;
      else if (!pool.asking) subjects.delete(subject);
      if (pool.back > 0 && !pool.asking) ask(pool);
    }
    if (!idle || subjects.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function all(): BlockPool[] {
    return [total, ...subjects.values()];
  }

  return {
    take,
    end() {
      turn += 1;
      on = false;
      // Another epoch has other buckets: what is left of this one is lost.
      const lost = view.current?.epoch !== epoch;
      epoch = view.current?.epoch ?? 0;
      for (const pool of all()) {
        pool.end();
        if (lost) pool.back = 0;
        if (pool.back > 0 && !pool.asking) ask(pool);
      }
    },
    forget() {
      turn += 1;
      for (const pool of all()) {
        pool.end();
        pool.back = 0;
      }
    },
    async close() {
      closed = true;
      clearInterval(timer);
      offUntilMs = Number.POSITIVE_INFINITY;
      turn += 1;
      for (const pool of all()) pool.end();
      // What they draw goes back too.
      await Promise.all(underWay);
      await inParts(all().filter((pool) => pool.back > 0));
    },
  };
}
