/** Tokens of one bucket that this process has drawn: the block in use, the one behind it, and how much is used. Stage: enforce. */

/** A block is used for this long at most, from the moment it was asked for. */
export const BLOCK_LIFE_MS = 250;
/** The next one is asked for when half of it is gone, or when this is left of its life. */
const RENEW_MS = 100;
/** A block is what was used lately in this time. */
const BLOCK_MS = 100;
/** Use is told apart over this. */
const WINDOW_MS = 50;
/** Of fewer tokens a block is not worth its call. */
export const LEAST_BLOCK = 8;

/** Of its part of the capacity a process holds two blocks at most: the one in use, and the one behind it. */
const BLOCKS_HELD = 2;

/** The largest block of one process, so that no one starves the others; 0: too small to be worth it. */
export function mostOf(capacity: number, processes: number): number {
  const part = Math.floor(capacity / processes / BLOCKS_HELD);
  return part >= LEAST_BLOCK ? part : 0;
}

/** Plain fields: a decision taken here costs a few reads and a subtraction. */
export class BlockPool {
  /** Tokens of the block in use, until when, and how few are few. */
  tokens = 0;
  untilMs = 0;
  low = 0;
  /** The block behind it. */
  nextTokens = 0;
  nextUntilMs = 0;
  /** Tokens to give back. */
  back = 0;
  /** Tokens that were left in Redis at the last draw. */
  left = 0;
  /** A draw is under way, or about to be. */
  asking = false;
  #used = 0;
  #sinceMs = 0;
  #perMs = 0;

  /** null: the total's. */
  constructor(readonly subject: string | null) {}

  use(cost: number, nowMs: number): void {
    if (nowMs - this.#sinceMs >= WINDOW_MS) this.#fold(nowMs);
    this.#used += cost;
  }

  /** The older half of what is known counts a quarter, so that use is followed within two windows. */
  #fold(nowMs: number): void {
    const ms = nowMs - this.#sinceMs;
    this.#perMs = (this.#used / ms) * 0.75 + (ms < 4 * WINDOW_MS ? this.#perMs * 0.25 : 0);
    this.#used = 0;
    this.#sinceMs = nowMs;
  }

  /** Does it hold `cost` tokens? The block behind it takes its place when it does not. */
  holds(cost: number, nowMs: number): boolean {
    if (this.tokens >= cost && nowMs < this.untilMs) return true;
    if (this.nextTokens === 0) return false;
    this.back += this.tokens;
    this.#put(this.nextTokens, this.nextUntilMs);
    this.nextTokens = 0;
    return this.tokens >= cost && nowMs < this.untilMs;
  }

  get wantsMore(): boolean {
    return this.tokens <= this.low && this.nextTokens === 0 && !this.asking;
  }

  isEnding(nowMs: number): boolean {
    return nowMs > this.untilMs - RENEW_MS && this.nextTokens === 0 && !this.asking;
  }

  /** Whole tokens of the block to ask for, at most `most`; 0: it is not worth a call. */
  wanted(most: number, nowMs: number): number {
    if (nowMs - this.#sinceMs >= WINDOW_MS) this.#fold(nowMs);
    const want = Math.ceil(Math.min(most, Math.max(this.#perMs * BLOCK_MS, this.#used)));
    return want >= LEAST_BLOCK ? want : 0;
  }

  receive(given: number, left: number, untilMs: number): void {
    this.left = left;
    if (given === 0) return;
    if (this.tokens === 0) this.#put(given, untilMs);
    else {
      this.back += this.nextTokens;
      this.nextTokens = given;
      this.nextUntilMs = untilMs;
    }
  }

  #put(tokens: number, untilMs: number): void {
    this.tokens = tokens;
    this.untilMs = untilMs;
    this.low = tokens >> 1;
  }

  /** What is over goes back; true if there is nothing to keep this for. */
  sweep(nowMs: number): boolean {
    if (nowMs >= this.untilMs) {
      this.back += this.tokens;
      this.tokens = 0;
    }
    if (nowMs >= this.nextUntilMs) {
      this.back += this.nextTokens;
      this.nextTokens = 0;
    }
    if (nowMs - this.#sinceMs >= WINDOW_MS) this.#fold(nowMs);
    return this.tokens + this.nextTokens + this.back === 0 && this.#perMs < LEAST_BLOCK / BLOCK_MS;
  }

  /** All of it goes back. */
  end(): void {
    this.back += this.tokens + this.nextTokens;
    this.tokens = 0;
    this.nextTokens = 0;
  }
}
