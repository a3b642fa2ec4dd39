/** Approve: one recommendation becomes what is in force, as one revision; a stale one is refused. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import {
  type ByPerson,
  byPersonText,
  PERSONAL_NUMBERS,
  parseByPerson,
} from '../../redis/by-person.js';
import type { LimiterAddress } from '../../redis/keys.js';
import { storedMs } from '../../redis/stream-id.js';
import { parseWindows } from '../../redis/windows.js';
import type { RedisClient } from '../actuator.js';
import { readEntries } from '../audit.js';
import type { EntryValues, StoredEntry } from '../entry.js';
import { isRecommendation } from '../evidence.js';
import { policyNumbers } from '../person-policy.js';
import { endCommand } from './ends.js';
import { clamp, type Facts, moved, type Planner, standing } from './plan.js';

/** Without a daemon nobody would say that it is over. */
const STALE_MS = 600_000;
const NOTES = 200;

/** The newest, or null. */
export async function readRecommendation(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<StoredEntry | null> {
  const { entries } = await readEntries(redis, address, { kind: 'note', limit: NOTES });
  return entries.find(isRecommendation) ?? null;
}

/** `revision`: what was in force when the person looked; undefined: the newest recommendation, whatever it stands on. */
export function approve(note: StoredEntry | null, revision?: number): Planner {
  return (facts) => {
    const { limiter, params, policy, actor } = facts;
    if (params.mode !== 'recommend') throw refused(wrongMode(facts));
    if (note?.body.after == null) {
      return {
        kind: 'nothing',
        sentence: `Nothing is recommended for ${limiter}: flyball audit ${limiter} shows notes.`,
      };
    }
    const wanted = note.body.after;
    const stale = staleness(facts, note, wanted, revision);
    if (stale !== null) {
      throw new FlyballError(
        'FLYBALL_E_APPROVE_STALE',
        `the recommendation for ${limiter} is stale: ${stale}. Nothing was changed; flyball audit ${limiter} shows the newest.`,
      );
    }
    const { values: before, settled, pinned, frozen } = standing(facts);
    if (pinned || frozen) {
      throw refused(
        `${limiter} is held by ${params.heldBy}: \`${endCommand(pinned ? 'pinned' : 'frozen', limiter)}\` first.`,
      );
    }
    if (before.state !== 'closed')
      throw refused(
        `the breaker of ${limiter} is ${before.state}. Approve once it is closed: flyball status ${limiter}.`,
      );
    const after: EntryValues = {
      ...before,
      rate: clamp(wanted.rate, params.minRate, params.maxRate),
      capacity: clamp(wanted.capacity, params.minCapacity, params.maxCapacity),
      inFlightMax:
        before.inFlightMax === 0
          ? 0
          : clamp(wanted.inFlightMax, params.minInFlight, params.maxInFlight),
    };
    const told = moved(before, after);
    if (told === '')
      return {
        kind: 'nothing',
        sentence: `What is recommended for ${limiter} is in force already.`,
      };
    const { rate, capacity, inFlightMax } = after;
    const { profile } = parseWindows(params.windows);
    const said = parseByPerson(params.byPerson);
    // The numbers of a profile end with it; only the policy's own are set aside.
    if (policy !== null && profile === undefined)
      setAside(said, after, policyNumbers(policy), actor);
    return {
      kind: 'change',
      reason: 'approve',
      ...{ before, after },
      agreed: ['mode', 'rate', 'capacity', 'inFlightMax'],
      basis: `${params.policyHash} ${note.id}`,
      change: { ...settled, rate, capacity, inFlightMax, byPerson: byPersonText(said) },
      sentence: `${actor} approved what was recommended for ${limiter}: ${told}. It said: ${note.body.sentence}`,
      detail: { approves: { id: note.id, hash: note.hash, reason: note.body.reason } },
      notes: [
        profile === undefined
          ? 'It stands until the policy file changes that very number.'
          : `It stands until profile ${profile.name} ends.`,
      ],
    };
  };
}

function setAside(
  said: ByPerson,
  after: EntryValues,
  own: ReturnType<typeof policyNumbers>,
  by: string,
): void {
  for (const field of PERSONAL_NUMBERS) {
    delete said[field];
    if (after[field] !== own[field]) said[field] = { is: after[field], over: own[field], by };
  }
}

function staleness(
  { params, nowMs }: Facts,
  note: StoredEntry,
  wanted: EntryValues,
  revision: number | undefined,
): string | null {
  const { before, policyHash } = note.body;
  if (revision !== undefined && revision !== note.revision) {
    return `you named revision ${revision}, and it was made at revision ${note.revision}`;
  }
  if (policyHash !== params.policyHash) return 'another policy has been adopted since';
  const told = before === null ? '' : moved(before, params);
  if (note.epoch !== params.epoch || told !== '') {
    return `what is in force has moved since${told ? ` (${told})` : ''}`;
  }
  if (wanted.state !== 'closed') return `the law would have the breaker ${wanted.state} by now`;
  const ageMs = nowMs - storedMs(note);
  if (params.validUntil <= nowMs && ageMs > STALE_MS) {
    return `it is ${Math.round(ageMs / 60_000)} min old, and no daemon is alive to renew it`;
  }
  return null;
}

function wrongMode({ limiter, params }: Facts): string {
  if (params.mode === 'auto')
    return `${limiter} is in mode auto: the law applies by itself what it recommends.`;
  return `${limiter} is in mode ${params.mode}, in which its numbers bind nobody. First: flyball promote ${limiter} --to recommend.`;
}

function refused(message: string): FlyballError {
  return new FlyballError('FLYBALL_E_APPROVE_REFUSED', message);
}
