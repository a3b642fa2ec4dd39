/** Gives back what takes took: when a caller asks, and when a request ended so that it does not count. Stage: enforce. */
import type { AlgorithmTerms } from '../redis/algorithms.js';
import type { RefundRequest } from '../redis/refund.js';
import { type Count, GIVEN_BACK } from './count.js';
import type { Decision, DecisionSource } from './decision.js';
import type { LocalBucket } from './local-bucket.js';
import type { Outcome } from './recorder.js';
import { NOTHING_TAKEN, type Refund, type Refunder } from './refund-answer.js';
import { createRefundCalls, type RefundCallsOptions } from './refund-calls.js';
import { newMark, readRefundId, writeRefundId } from './refund-id.js';

/** Decided on buckets in Redis, the shadow's among them. */
const BY_REDIS: readonly string[] = [
  'redis',
  'block',
  'unmanaged',
  'shadow',
] satisfies DecisionSource[];

export interface RefundsOptions extends RefundCallsOptions {
  local: () => LocalBucket;
  /** How takes are decided now; undefined: the token bucket. */
  terms: () => AlgorithmTerms | undefined;
  count: () => Count;
}

export interface Refunds extends Refunder {
  byId(id: string): Promise<Refund>;
  /** The request has ended: what does not count goes back, with the others of this turn. */
  ended(decision: Decision, outcome: Outcome): void;
  close(): Promise<void>;
}

export function createRefunds(options: RefundsOptions): Refunds {
  const { name, time, clock } = options;
  const calls = createRefundCalls(options);

  /** null: Redis took nothing for it that can go back. */
  function requestOf(decision: Decision): RefundRequest | null {
    const { source, reason, wouldAllow, subject, epoch, generation } = decision;
    if (!wouldAllow || !BY_REDIS.includes(source)) return null;
    // An exempt subject took what was there: perhaps nothing.
    if (reason === 'off' || reason === 'exempt') return null;
    const { cost, terms, mark, shared, ...when } = decision.charge();
    if (cost === 0) return null;
    if (terms?.algorithm === 'leaky-bucket') return null;
    const atUs = when.atUs ?? (time.nowMs(when.atMs ?? 0) ?? clock.nowMs()) * 1000;
    // Without params there is no epoch.
    const of = source === 'unmanaged' ? { epoch: 0, generation: 0 } : { epoch, generation };
    // The total alone gets back what was taken from the bucket that newcomers share.
    return { subject: shared ? null : subject, cost, atUs, ...of, terms, mark };
  }

  function ask(request: RefundRequest, shadow: boolean): Promise<Refund> {
    if (!sameTerms(request.terms, options.terms())) {
      return Promise.resolve({ refunded: false, why: 'moved_on' });
    }
    return new Promise((settle) => calls.add(request, shadow, settle));
  }

  function idOf(decision: Decision): string | null {
    const request = requestOf(decision);
    if (request === null) return null;
    const charge = decision.charge();
    // What has gone back goes back once, whoever reads the id later.
    if (charge.returned) return null;
    charge.mark ??= newMark();
    const marked = { ...request, mark: charge.mark };
    return writeRefundId(name, { request: marked, shadow: charge.shadow });
  }

  return {
    idOf,
    async byId(id) {
      const { request, shadow } = readRefundId(name, id);
      return ask(request, shadow);
    },
    async refund(decision) {
      const charge = decision.charge();
      if (charge.returned) return { refunded: false, why: 'already' };
      if (decision.source === 'local') {
        charge.returned = true;
        options.local().giveBack(decision.subject, charge.cost);
        return { refunded: true };
      }
      if (charge.terms?.algorithm === 'leaky-bucket') return { refunded: false, why: 'paced' };
      charge.mark ??= newMark();
      const request = requestOf(decision);
      return request === null ? NOTHING_TAKEN : ask(request, charge.shadow);
    },
    ended(decision, outcome) {
      const count = options.count();
      if (count === 'all' || outcome !== GIVEN_BACK[count]) return;
      const charge = decision.charge();
      if (charge.returned) return;
      charge.returned = true;
      if (decision.source === 'local') {
        options.local().giveBack(decision.subject, charge.cost);
        return;
      }
      const request = requestOf(decision);
      if (request && sameTerms(request.terms, options.terms())) calls.add(request, charge.shadow);
    },
    close: () => calls.close(),
  };
}

/** A window of another kind or length is another window. */
function sameTerms(a: AlgorithmTerms | undefined, b: AlgorithmTerms | undefined): boolean {
  const plain = (terms: AlgorithmTerms | undefined) =>
    terms === undefined || terms.algorithm === 'token-bucket';
  if (plain(a) || plain(b)) return plain(a) && plain(b);
  return a?.algorithm === b?.algorithm && a?.windowMs === b?.windowMs && a?.cells === b?.cells;
}
