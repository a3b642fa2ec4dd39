/** Fair shares as one would keep them by hand: who owes what of what the bucket lacks. The script must answer the same. */
export interface FairTake {
  subject: string | null;
  cost: number;
}

export interface FairAnswer {
  reason: 'ok' | 'rate' | 'fair_share' | 'cost_exceeds_capacity';
  /** How far the take was from the other answer; near 0 both are right. */
  margin: number;
}

/** Nobody is known to owe it. */
const NOBODY = '!';
const SLACK = 5e-7;

export class FairModel {
  tokens: number;
  atUs: number;
  endsUs = 0;
  /** Until when one who owes is held to be beside others. */
  companyUs = 0;
  owed = new Map<string, number>();

  constructor(
    readonly rate: number,
    readonly capacity: number,
    nowUs: number,
  ) {
    this.tokens = capacity;
    this.atUs = nowUs;
  }

  get holdUs(): number {
    return 1e6 * Math.min(60, Math.max(1, this.capacity / this.rate));
  }

  take({ subject, cost }: FairTake, nowUs: number): FairAnswer {
    this.tokens = Math.min(this.capacity, this.tokens + (this.rate * (nowUs - this.atUs)) / 1e6);
    this.atUs = nowUs;
    const pressing = nowUs < this.endsUs;
    const owed = pressing ? this.settled() : new Map<string, number>();
    if (cost > this.capacity) return { reason: 'cost_exceeds_capacity', margin: 1 };
    const own = pressing && subject !== null ? (owed.get(subject) ?? 0) : 0;
    const margin = Math.min(
      Math.abs(this.tokens - cost),
      own > 0 ? Math.abs(this.tokens - cost - own) : 1,
    );
    if (cost > this.tokens + SLACK) {
      this.press(pressing, owed, nowUs);
      return { reason: 'rate', margin };
    }
    if (own + cost > this.tokens + SLACK) {
      const reason = this.inCompany(owed, subject!, nowUs) ? 'fair_share' : 'rate';
      this.press(pressing, owed, nowUs);
      return { reason, margin };
    }
    this.tokens -= cost;
    if (pressing) {
      if (subject !== null) this.inCompany(owed, subject, nowUs);
      const name = subject ?? NOBODY;
      owed.set(name, (owed.get(name) ?? 0) + cost);
      this.owed = owed;
    }
    return { reason: 'ok', margin };
  }

  private inCompany(owed: Map<string, number>, subject: string, nowUs: number): boolean {
    const others = [...owed.keys()].some((name) => name !== NOBODY && name !== subject);
    if (others && this.companyUs - nowUs < this.holdUs / 2) this.companyUs = nowUs + this.holdUs;
    return this.companyUs > nowUs;
  }

  /** What the bucket no longer lacks was paid, by all who owe alike; what it lacks beyond their sum nobody owes. */
  settled(): Map<string, number> {
    const owed = new Map(this.owed);
    const missing = this.capacity - this.tokens;
    let due = [...owed.values()].reduce((sum, each) => sum + each, 0) - missing;
    if (due < -SLACK) owed.set(NOBODY, (owed.get(NOBODY) ?? 0) - due);
    while (due > 0 && owed.size > 0) {
      const part = Math.min(due / owed.size, ...owed.values());
      due -= part * owed.size;
      for (const [name, each] of owed) {
        if (each - part <= 1e-12) owed.delete(name);
        else owed.set(name, each - part);
      }
      if (part === 0) break;
    }
    return owed;
  }

  private press(pressing: boolean, owed: Map<string, number>, nowUs: number): void {
    if (pressing && this.endsUs - nowUs >= this.holdUs / 2) return;
    this.endsUs = nowUs + this.holdUs;
    this.owed = owed;
    if (pressing) return;
    this.owed = new Map();
    this.companyUs = 0;
    const missing = this.capacity - this.tokens;
    if (missing > 0) this.owed.set(NOBODY, missing);
  }
}
