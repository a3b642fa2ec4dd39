/** What each kind of alert says: what happened, why, the numbers, and the command that takes it back. Stage: report. */
import type { AlertKind } from '../../policy/notify-schema.js';
import type { Alert } from './alert.js';
import type { WatchFacts } from './watch.js';

export interface WordsFor {
  facts: WatchFacts;
  /** What it is about within the limiter: a signal's name; else empty. */
  about: string;
}

type Words = Pick<Alert, 'what' | 'why' | 'who' | 'numbers' | 'undo' | 'look'>;

/** Reasons of changes that are told by themselves. */
export const EVENTS: Record<string, AlertKind> = {
  redis_failover: 'failover',
  writes_lost: 'writes_lost',
  params_restored: 'params_restored',
  auto_rollback: 'auto_rollback',
  canary_failed: 'canary_failed',
};

const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const rate = (value: number) => `${Number(value.toPrecision(3))}/s`;

function shareOf(facts: WatchFacts, part: 'denied' | 'fallback' | 'slow' | 'overflow'): string {
  const { traffic } = facts;
  return traffic === null || traffic.offered === 0
    ? 'unknown'
    : percent(traffic[part] / traffic.offered);
}

/** By kind: what it says while it lasts. What is over is told by the same words: the mark says that it is over. */
export function words(kind: AlertKind, of: WordsFor): Words {
  const { facts, about } = of;
  const { limiter, change } = facts;
  const why = change?.sentence ?? 'no entry of it was found';
  const inForce: Words['numbers'] = [
    ['rate', rate(facts.rate)],
    ['in-flight cap', facts.inFlightMax === 0 ? 'none' : String(facts.inFlightMax)],
    ['state', facts.state],
    ['revision', String(facts.revision)],
  ];
  const base: Words = {
    what: kind,
    why,
    who: `seen by ${facts.daemon}`,
    numbers: inForce,
    undo: null,
    look: `flyball status ${limiter}`,
  };
  switch (kind) {
    case 'trip':
    case 'retrip': {
      const over = facts.state === 'closed';
      return {
        ...base,
        what: over
          ? `recovered, ${rate(facts.rate)}`
          : `${kind === 'retrip' ? 'tripped again' : 'tripped'}, the rate is ${rate(facts.rate)}`,
        who: change?.who ?? base.who,
        undo: over ? null : `flyball reset ${limiter} --reason '…'`,
        look: change === null ? base.look : `flyball explain ${limiter} ${change.revision}`,
      };
    }
    case 'at_floor':
      return {
        ...base,
        what: 'at the least that its bounds allow, and still overloaded',
        why: `${facts.atFloorTicks} ticks at the floor: the load must fall, the service grow, or bounds.rate.min be lower`,
        undo: `flyball pin ${limiter} --rate <n> --for 1h --reason '…'`,
      };
    case 'denied':
      return {
        ...base,
        what: `${shareOf(facts, 'denied')} of requests denied, far above usual`,
        why: 'more is asked for than the limit admits',
        undo: `flyball pin ${limiter} --rate <n> --for 1h --reason '…'`,
        look: `flyball top ${limiter}`,
      };
    case 'subjects_overflow': {
      const { offered = 0, overflow = 0 } = facts.traffic ?? {};
      return {
        ...base,
        what:
          overflow === 0
            ? 'newcomers have buckets of their own again'
            : `${shareOf(facts, 'overflow')} of requests are of newcomers who share one bucket`,
        why: 'as many subjects live as subjects.max allows: somebody makes them up, or the number is too low and is to be raised',
        numbers: [
          ['requests in the shared bucket', `${overflow} of ${offered}`],
          ['subjects.max', facts.subjectsMax === null ? 'none' : String(facts.subjectsMax)],
          ...inForce,
        ],
        look: `flyball top ${limiter} --denied`,
      };
    }
    case 'fallback':
      return {
        ...base,
        what: `${shareOf(facts, 'fallback')} of decisions made without Redis`,
        why: 'services did not have its answer in time, and decided by onRedisError',
        look: 'flyball doctor',
      };
    case 'slow_decisions':
      return {
        ...base,
        what: 'the p99 of decisions is above 5 ms',
        why: `${shareOf(facts, 'slow')} of decisions took longer: Redis or the network is slow, or services are short of CPU`,
        look: 'flyball doctor',
      };
    case 'signal_lost': {
      const signal = facts.signals[about];
      return {
        ...base,
        what: signal?.lost
          ? `signal ${about} is lost`
          : `signal ${about} is ${signal ? 'back' : 'gone'}`,
        why: signal?.lost
          ? signal.why
          : signal
            ? 'it can be acted on again'
            : 'the policy no longer names it',
        look: `flyball signals ${limiter}`,
      };
    }
    case 'failover':
      return {
        ...base,
        what: 'another Redis server took over',
        who: change?.who ?? base.who,
        undo: `flyball rollback ${limiter} --last --reason '…'`,
        look: change === null ? base.look : `flyball explain ${limiter} ${change.revision}`,
      };
    case 'writes_lost':
      return {
        ...base,
        what: 'Redis lost writes: what had been in force is put back',
        who: change?.who ?? base.who,
        look: change === null ? base.look : `flyball explain ${limiter} ${change.revision}`,
      };
    case 'params_restored':
      return {
        ...base,
        what: `Redis had lost the limits of ${limiter}: they are back as last seen`,
        why: `${why} What else Redis held (other limiters, what was said of subjects, audit logs) may be lost too`,
        who: change?.who ?? base.who,
        look: 'flyball doctor',
      };
    case 'auto_rollback':
      return {
        ...base,
        what: 'goodput fell after the limits rose: back to the last good values',
        who: change?.who ?? base.who,
        undo: `flyball rollback ${limiter} --last --reason '…'`,
        look: change === null ? base.look : `flyball explain ${limiter} ${change.revision}`,
      };
    case 'canary_failed':
      return {
        ...base,
        what: 'a change of its policy failed on a part of the subjects, and was taken back',
        who: change?.who ?? base.who,
        look: change === null ? base.look : `flyball explain ${limiter} ${change.revision}`,
      };
    case 'hold_ending': {
      const leftS = Math.max(0, Math.round(((facts.holdEndsMs ?? 0) - facts.nowMs) / 1000));
      return {
        ...base,
        what: `${facts.boundsEnd ? 'the bounds' : 'the hold'} of ${facts.heldBy || 'a person'} ${facts.boundsEnd ? 'end' : 'ends'} in ${Math.floor(leftS / 60)} min ${leftS % 60} s`,
        why: facts.boundsEnd
          ? "after it the policy's own bounds hold, and what lies above comes back within them"
          : 'after it the autopilot goes on from the held values',
        undo: facts.boundsEnd
          ? `flyball status ${limiter} shows them; flyball bounds ${limiter} --for 1h … sets them anew`
          : `flyball freeze ${limiter} --for 1h --reason '…'`,
      };
    }
    default:
      return base;
  }
}
