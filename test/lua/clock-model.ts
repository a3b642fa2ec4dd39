/**
 * The token clock written a second time, for tests: one number a bucket, V by adding up the pieces of the rate
 * between breakpoints, floors from the words of docs/contract.md. Shares no code with the product.
 */

export interface ModelParams {
  state: 'closed' | 'open' | 'half-open' | 'recovering';
  rate: number;
  capacity: number;
  subjectRate: number;
  subjectCapacity: number;
  subjectFollow: 0 | 1;
  policyRate: number;
  minRate: number;
  maxCapacity: number;
  probeRate: number;
  openUntil: number;
  openForMs: number;
  validUntil: number;
  lostAfterMs: number;
  lostOverMs: number;
  safeRate: number;
  pinnedUntil: number;
  frozenUntil: number;
}

export type ModelChange = Partial<Omit<ModelParams, 'validUntil'>>;

/** What the script forgives, so that rounding never denies. */
const slackAt = (v: number) => 5e-7 + Math.max(0, v) * 2 ** -51;

export interface ModelAnswer {
  reason: 'ok' | 'rate' | 'subject' | 'breaker_open' | 'probe_budget' | 'cost_exceeds_capacity';
  left: number;
  /** How far the nearest bucket was from deciding the other way. */
  margin: number;
}

export class ClockModel {
  params: ModelParams;
  accrued = 0;
  subjectAccrued = 0;
  floor: number;
  subjectFloor: number;
  changedAtUs: number;
  /** How long keys are kept, at least: set to twice the need whenever it must grow (or is four times too long). */
  keptMs: number;
  subjectKeptMs: number;
  readonly marks = new Map<string, number>();
  /** The bound of the rate: what a refund reckons with that comes after a write. */
  maxRate = 1_000;

  constructor(params: ModelParams, nowUs: number) {
    this.params = { ...params };
    this.changedAtUs = nowUs;
    this.params.validUntil = Math.max(params.validUntil, Math.floor(nowUs / 1000));
    this.floor = -params.capacity;
    this.subjectFloor = -params.subjectCapacity;
    const need = this.needMs(params);
    this.keptMs = 2 * need.total;
    this.subjectKeptMs = 2 * need.subject;
  }

  /** Open by the clock: not yet over, and not further ahead than it was ever set. */
  isOpen(nowUs: number): boolean {
    const { state, openUntil, openForMs } = this.params;
    if (state !== 'open') return false;
    if (openUntil < 0) return true;
    const leftMs = openUntil - nowUs / 1000;
    return leftMs > 0 && leftMs <= openForMs;
  }

  glideFromUs(): number {
    const { pinnedUntil, frozenUntil, validUntil, openUntil, state, lostAfterMs } = this.params;
    const holds = [pinnedUntil, frozenUntil, ...(state === 'open' ? [openUntil] : [])];
    if (holds.includes(-1)) return Number.POSITIVE_INFINITY;
    return (Math.max(validUntil, ...holds) + lostAfterMs) * 1000;
  }

  isGliding(nowUs: number): boolean {
    return nowUs >= this.glideFromUs();
  }

  stateAt(nowUs: number): ModelParams['state'] {
    const stopped = this.params.state === 'open' || this.params.state === 'half-open';
    if (!stopped || this.isOpen(nowUs)) return this.params.state;
    return this.isGliding(nowUs) ? 'recovering' : 'half-open';
  }

  private glided(from: number, to: number, nowUs: number): number {
    const start = this.glideFromUs();
    if (nowUs < start) return from;
    const over = this.params.lostOverMs * 1000;
    const share = over === 0 ? 1 : Math.min(1, (nowUs - start) / over);
    return from + (to - from) * share;
  }

  rateAt(nowUs: number): number {
    if (this.isOpen(nowUs)) return 0;
    const { state, probeRate, rate, safeRate } = this.params;
    const stopped = state === 'open' || state === 'half-open';
    return this.glided(stopped ? probeRate : rate, safeRate, nowUs);
  }

  /** A subject's bucket follows the target of the rate, never the breaker. */
  subjectRateAt(nowUs: number): number {
    const { subjectRate, subjectFollow, rate, safeRate, policyRate } = this.params;
    if (subjectRate < 0) return 0;
    return subjectFollow
      ? (subjectRate * this.glided(rate, safeRate, nowUs)) / policyRate
      : subjectRate;
  }

  capacityAt(nowUs: number): number {
    const { capacity, probeRate } = this.params;
    const state = this.stateAt(nowUs);
    const narrow = Math.min(capacity, Math.max(1, probeRate));
    if (state === 'half-open') return narrow;
    const probing = this.params.state === 'open' || this.params.state === 'half-open';
    return probing && state === 'recovering' ? this.glided(narrow, capacity, nowUs) : capacity;
  }

  /** ∫ rate from `from` to `to`: it is linear between breakpoints, so the middle of each piece is exact. */
  paid(rateAt: (us: number) => number, from: number, to: number): number {
    const { openUntil, lostOverMs } = this.params;
    const glide = this.glideFromUs();
    const points = [openUntil * 1000, glide, glide + lostOverMs * 1000]
      .filter((each) => each > from && each < to)
      .sort((a, b) => a - b);
    let sum = 0;
    let at = from;
    for (const point of [...points, to]) {
      sum += rateAt((at + point) / 2) * (point - at);
      at = point;
    }
    return sum / 1e6;
  }

  private clock(accrued: number, rateAt: (us: number) => number, nowUs: number): number {
    const { changedAtUs } = this;
    if (nowUs < changedAtUs) return accrued - (rateAt(nowUs) * (changedAtUs - nowUs)) / 1e6;
    return accrued + this.paid(rateAt, changedAtUs, nowUs);
  }

  v(nowUs: number): number {
    return this.clock(this.accrued, (us) => this.rateAt(us), nowUs);
  }

  subjectV(nowUs: number): number {
    return this.clock(this.subjectAccrued, (us) => this.subjectRateAt(us), nowUs);
  }

  /** A second more than a bucket takes to fill at the slowest that the limits go by themselves. */
  private needMs(p: ModelParams): { total: number; subject: number } {
    const least = (...rates: number[]) => Math.min(...rates.filter((each) => each > 0));
    const ms = (size: number, rate: number) => Math.ceil((size / rate) * 1000) + 1000;
    const slowest = least(p.minRate, p.probeRate, p.safeRate, p.rate);
    const follow = p.subjectFollow ? least(p.minRate, p.safeRate, p.rate) : 1;
    const subject = p.subjectFollow ? (p.subjectRate * follow) / p.policyRate : p.subjectRate;
    return {
      total: ms(Math.max(p.capacity, p.maxCapacity), slowest),
      subject: p.subjectRate < 0 ? 0 : ms(p.subjectCapacity, subject),
    };
  }

  /** A write: clocks are paid up, what time alone has changed is made plain, floors keep it from minting. */
  change(change: ModelChange, nowUs: number): void {
    const was = { ...this.params };
    const wasState = this.stateAt(nowUs);
    const wasCapacity = this.capacityAt(nowUs);
    const v = this.v(nowUs);
    const subjectV = this.subjectV(nowUs);
    const nowMs = Math.floor(nowUs / 1000);
    const p: ModelParams = { ...was, state: wasState };
    if (this.isGliding(nowUs)) p.rate = this.rateAt(nowUs);
    Object.assign(p, change);
    const trip = p.state === 'open' && wasState !== 'open';
    if (p.state !== 'open') p.openUntil = 0;
    else if (change.openUntil === undefined) {
      if (trip) p.openUntil = nowMs + p.openForMs;
      else if (p.openUntil !== -1) p.openUntil = Math.min(p.openUntil, nowMs + p.openForMs);
    } else if (p.openUntil !== -1) p.openForMs = Math.max(p.openForMs, p.openUntil - nowMs);
    p.validUntil = Math.max(p.validUntil, nowMs);

    const floors = [Math.min(this.floor, v)];
    const subjectFloors = [Math.min(this.subjectFloor, subjectV)];
    const narrow = Math.min(p.capacity, Math.max(1, p.probeRate));
    const room = p.state === 'half-open' ? narrow : p.capacity;
    if (room > wasCapacity) floors.push(v - wasCapacity);
    if (p.state === 'half-open') floors.push(v - room);
    if (p.subjectCapacity > was.subjectCapacity) subjectFloors.push(subjectV - was.subjectCapacity);
    const need = this.needMs(p);
    const touchesOpen = p.state === 'open' || wasState === 'open';
    const stops = p.rate === 0 && was.rate > 0;
    if (touchesOpen || stops || need.total > this.keptMs) floors.push(v);
    if (p.subjectFollow && stops) subjectFloors.push(subjectV);
    if (need.subject > this.subjectKeptMs) subjectFloors.push(subjectV);

    const kept = (now: number, needed: number) =>
      needed > now || now > 4 * needed ? 2 * needed : now;
    this.keptMs = kept(this.keptMs, need.total);
    this.subjectKeptMs = kept(this.subjectKeptMs, need.subject);
    this.params = p;
    this.accrued = v;
    this.subjectAccrued = subjectV;
    this.changedAtUs = nowUs;
    this.floor = Math.max(...floors);
    this.subjectFloor = Math.max(...subjectFloors);
  }

  /** The heartbeat: only the autopilot's word is renewed; false when it comes too late. */
  beat(leaseMs: number, nowUs: number): boolean {
    if (this.isGliding(nowUs) || nowUs < this.changedAtUs) return false;
    this.params.validUntil = Math.floor(nowUs / 1000) + leaseMs;
    return true;
  }

  /** From where a bucket's tokens count; a mark ahead of the clock is brought back to it. */
  private base(name: string, v: number, capacity: number, floor: number): number {
    const mark = Math.min(this.marks.get(name) ?? Number.NEGATIVE_INFINITY, v);
    return Math.max(mark, v - capacity, floor > v + slackAt(v) ? Number.NEGATIVE_INFINITY : floor);
  }

  take(subject: string | null, cost: number, nowUs: number): ModelAnswer {
    const { params } = this;
    const v = this.v(nowUs);
    const subjectV = this.subjectV(nowUs);
    const capacity = this.capacityAt(nowUs);
    const state = this.stateAt(nowUs);
    const own = subject !== null && params.subjectRate >= 0;
    const base = this.base('', v, capacity, this.floor);
    const ownBase = own
      ? this.base(subject, subjectV, params.subjectCapacity, this.subjectFloor)
      : Number.NEGATIVE_INFINITY;
    const left = v - base;
    const ownLeft = subjectV - ownBase;
    const margin = Math.min(Math.abs(left - cost), Math.abs(ownLeft - cost));
    const rest = Math.min(left, ownLeft);
    // What lay ahead of the clock is written back, whatever the answer; a peek writes nothing at all.
    if (cost > 0 && (this.marks.get('') ?? v) > v + slackAt(v)) this.marks.set('', base);
    if (cost > 0 && own && (this.marks.get(subject) ?? subjectV) > subjectV + slackAt(subjectV))
      this.marks.set(subject, ownBase);

    const answer = (reason: ModelAnswer['reason'], after = rest) => ({
      reason,
      left: after,
      margin,
    });
    if (cost > params.capacity || (own && cost > params.subjectCapacity)) {
      return answer('cost_exceeds_capacity');
    }
    if (state === 'open') return answer('breaker_open');
    if (ownLeft + slackAt(subjectV) < cost) return answer('subject');
    if (left + slackAt(v) < cost) return answer(state === 'half-open' ? 'probe_budget' : 'rate');
    if (cost > 0) {
      this.marks.set('', base + cost);
      if (own) this.marks.set(subject, ownBase + cost);
    }
    return answer('ok', rest - cost);
  }

  /** What was taken goes back, as far as its bucket still owes it; true: at least one of the two did. */
  refund(taken: ModelTaken, nowUs: number, sameGeneration: boolean): boolean {
    const { params } = this;
    const state = this.stateAt(nowUs);
    const most = Math.max(params.rate, this.maxRate, params.safeRate, params.probeRate);
    const before = taken.atUs < this.changedAtUs;
    const sinceS = (this.changedAtUs - taken.atUs) / 1e6;
    const kept = (accrued: number, floor: number, rate: number) =>
      !before || floor <= accrued - rate * sinceS;
    let done = false;
    const give = (name: string, v: number, capacity: number, floor: number) => {
      const mark = this.marks.get(name);
      if (mark !== undefined && mark > v + slackAt(v)) return;
      done = true;
      if (mark === undefined) return;
      const least = floor > v + slackAt(v) ? Number.NEGATIVE_INFINITY : floor;
      this.marks.set(name, Math.min(mark, Math.max(mark - taken.cost, v - capacity, least)));
    };
    const closed = state === 'closed' || state === 'recovering';
    if (closed && sameGeneration && kept(this.accrued, this.floor, most)) {
      give('', this.v(nowUs), this.capacityAt(nowUs), this.floor);
    }
    if (taken.subject !== null && params.subjectRate >= 0) {
      const fastest = params.subjectRate * (params.subjectFollow ? most / params.policyRate : 1);
      if (kept(this.subjectAccrued, this.subjectFloor, fastest)) {
        give(taken.subject, this.subjectV(nowUs), params.subjectCapacity, this.subjectFloor);
      }
    }
    return done;
  }
}

export interface ModelTaken {
  subject: string | null;
  cost: number;
  atUs: number;
}
