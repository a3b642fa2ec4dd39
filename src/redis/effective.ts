/** What is in force at a moment, as a pure function of params: the twin of `lua/lib/effective.lua`. Stage: enforce, actuate. */
import type { LimiterState, Params } from './params.js';

/** Numbers in force; `tokens` and `subjectTokens` are what the token clocks V have paid up to the moment. */
export interface Effective {
  state: LimiterState;
  /** The autopilot is gone and the limits are on their way to the safe values, or there. */
  gliding: boolean;
  rate: number;
  capacity: number;
  /** 0 = no cap. */
  inFlightMax: number;
  /** -1 = no subject bucket. */
  subjectRate: number;
  subjectCapacity: number;
  tokens: number;
  subjectTokens: number;
}

/** 2^53 µs, the year 2255. */
const NEVER = 2 ** 53;

/** What is in force at Redis time `nowMs` (a fraction of a millisecond counts). */
export function effective(params: Params, nowMs: number): Effective {
  return effectiveAtUs(params, Math.round(nowMs * 1000));
}

/** What a write finds: the state that time has brought, and while gliding the numbers reached. The scripts settle alike. */
export function settled(
  params: Params,
  now: Effective,
): Pick<Params, 'state' | 'rate' | 'inFlightMax'> {
  const { rate, inFlightMax } = now.gliding ? now : params;
  return { state: now.state, rate, inFlightMax };
}

/** `effective` at a Redis time in µs. Every operation stands in the same order as in Lua: results are bit-equal. */
export function effectiveAtUs(p: Params, now: number): Effective {
  const open = isOpen(p, now);
  const probing = !open && (p.state === 'open' || p.state === 'half-open');
  const glide = glideStartUs(p);
  const over = p.lostOverMs * 1000;
  const gliding = now >= glide;
  const share = gliding ? (now >= glide + over ? 1 : (now - glide) / over) : 0;

  const base = p.state === 'open' || p.state === 'half-open' ? p.probeRate : p.rate;
  const rate = open ? 0 : base + (p.safeRate - base) * share;
  let capacity = p.capacity;
  if (probing) {
    const narrow = Math.min(capacity, Math.max(1, p.probeRate));
    capacity = narrow + (capacity - narrow) * share;
  }
  let cap = p.inFlightMax;
  if (cap > 0 && p.safeInFlight > 0) cap = Math.floor(cap + (p.safeInFlight - cap) * share + 0.5);

  const follows = p.subjectFollow === 1;
  const none = p.subjectRate < 0;
  const subjectBase = none ? 0 : p.subjectRate * (follows ? p.rate / p.policyRate : 1);
  const subjectSafe = none ? 0 : p.subjectRate * (follows ? p.safeRate / p.policyRate : 1);
  const subjectRate = subjectBase + (subjectSafe - subjectBase) * share;

  let opens = 0;
  if (open) opens = p.openUntil === -1 ? NEVER : p.openUntil * 1000;
  else if (p.state === 'open' && p.openUntil * 1000 <= now) opens = p.openUntil * 1000;
  let tokens: number;
  let subjectTokens: number;
  if (now < p.changedAt) {
    tokens = p.accrued - (rate * (p.changedAt - now)) / 1_000_000;
    subjectTokens = p.subjectAccrued - (subjectRate * (p.changedAt - now)) / 1_000_000;
  } else {
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over);
    subjectTokens =
      p.subjectAccrued + paid(subjectBase, subjectSafe, p.changedAt, now, 0, glide, over);
  }
  return {
    state: probing ? (gliding ? 'recovering' : 'half-open') : p.state,
    gliding,
    rate,
    capacity,
    inFlightMax: cap,
    subjectRate: none ? -1 : subjectRate,
    subjectCapacity: p.subjectCapacity,
    tokens,
    subjectTokens,
  };
}

/** A hold is active until its time, or until a person ends it (-1). */
export function isActive(until: number, nowMs: number): boolean {
  return until === -1 || until > nowMs;
}

/** When the glide to the safe values begins (µs; 2^53 = never): a hold and an open time beat a lapsed heartbeat. */
export function glideStartUs(p: Params): number {
  if (p.pinnedUntil === -1 || p.frozenUntil === -1) return NEVER;
  let start = Math.max(p.validUntil, p.pinnedUntil, p.frozenUntil);
  if (p.state === 'open') {
    if (p.openUntil === -1) return NEVER;
    start = Math.max(start, p.openUntil);
  }
  return (start + p.lostAfterMs) * 1000;
}

/** Open is over when its time is, or when it lies further ahead than it was ever set: the clock was set back. */
function isOpen(p: Params, now: number): boolean {
  if (p.state !== 'open') return false;
  if (p.openUntil === -1) return true;
  const left = p.openUntil * 1000 - now;
  return left > 0 && left <= p.openForMs * 1000;
}

/** Tokens paid from `from` to `to`: 0 before `opens`, `base` until the glide, linearly to `safe`, then `safe`. */
function paid(
  base: number,
  safe: number,
  from: number,
  to: number,
  opens: number,
  glide: number,
  over: number,
): number {
  let sum = 0;
  const start = Math.max(from, opens);
  const stop = Math.min(to, glide);
  if (stop > start) sum = base * (stop - start);
  const finish = glide + over;
  const left = Math.max(from, glide);
  const right = Math.min(to, finish);
  if (right > left) {
    const first = base + (safe - base) * ((left - glide) / over);
    const last = base + (safe - base) * ((right - glide) / over);
    sum += ((first + last) / 2) * (right - left);
  }
  const after = Math.max(from, finish);
  if (to > after) sum += safe * (to - after);
  return sum / 1_000_000;
}
