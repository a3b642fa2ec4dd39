/** What a rollback goes back to: a revision, before the last change, the last good one, or what held at a time. Stage: cli, api. */

import { readParams } from '../actuate/actuator.js';
import { findRevision, readEntries, type StoredEntry } from '../actuate/audit.js';
import { readPolicy } from '../actuate/verbs/apply.js';
import type { Seen } from '../actuate/verbs/carries.js';
import type { RollbackTarget } from '../actuate/verbs/rollback.js';
import { WishFault } from '../actuate/verbs/wish-fault.js';
import { goodRevision } from '../audit/good-revision.js';
import { lastChange, movesNumbers } from '../audit/last-change.js';
import { FlyballError } from '../errors.js';
import type { Policy } from '../policy/schema.js';
import { HISTORY_MINUTE_MS, HISTORY_MINUTES, readHistory } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { iso } from './entry.js';
import { parseStatus } from './status-facts.js';

export type RollbackWish =
  | { to: 'revision'; revision: number; epoch?: number | undefined }
  | { to: 'last' }
  | { to: 'good' }
  /** Redis ms, or so long before now. */
  | { to: 'before'; at: { atMs: number } | { agoMs: number } };

const NO_REVISION = 'FLYBALL_E_AUDIT_NO_REVISION';
/** A move of the autopilot has at most so many steps that are looked at. */
const MOST_STEPS = 2_000;
const MOST_ENTRIES = 20_000;

/** An error where there is nothing to go back to, with what can be done instead. */
export async function rollbackTarget(
  redis: RedisClient,
  address: LimiterAddress,
  wish: RollbackWish,
): Promise<RollbackTarget> {
  const target = await find(redis, address, wish);
  return { ...target, seen: await lastSeen(redis, address) };
}

async function find(
  redis: RedisClient,
  address: LimiterAddress,
  wish: RollbackWish,
): Promise<RollbackTarget> {
  const { name } = address;
  if (wish.to === 'revision') {
    const entry = await findRevision(redis, address, wish.revision, wish.epoch);
    if (entry !== null && entry.body.after !== null) return after(entry);
    const place = wish.epoch === undefined ? '' : ` in epoch ${wish.epoch}`;
    throw none(
      `${name} has no audit entry for revision ${wish.revision}${place}. \`flyball audit ${name}\` lists the revisions that are kept.`,
    );
  }
  const { params, nowUs } = await readParams(redis, address);
  const now = params ?? { rate: 0, capacity: 0, inFlightMax: 0 };
  const nowMs = nowUs / 1000;
  if (wish.to === 'before') {
    const { at } = wish;
    return heldAt(redis, address, 'atMs' in at ? at.atMs : nowMs - at.agoMs, nowMs);
  }
  if (wish.to === 'last') {
    const page = await readEntries(redis, address, { kind: 'change', limit: MOST_STEPS });
    const last = lastChange(page.entries, now);
    if (last === null) {
      const newest = page.entries.find(movesNumbers);
      if (newest?.body.reason === 'rollback') {
        throw none(
          `the last change of ${name} is a rollback (revision ${newest.revision}), and no older one is kept to go further back. ${takesBack(name, newest.revision)} \`flyball audit ${name}\` lists what is kept.`,
        );
      }
      throw none(
        `nothing has moved the limits of ${name} in the entries that are kept: there is no last change to undo. \`flyball audit ${name}\` lists them.`,
      );
    }
    const { epoch, revision, before, words, beyond } = last;
    const target = { epoch, revision, after: before, words: `what held ${words}` };
    if (beyond === undefined) return { ...target, chosen: 'last' };
    const why = `The last change was a rollback already (revision ${beyond}): this goes one further back. ${takesBack(name, beyond)}`;
    return { ...target, chosen: 'last', why };
  }
  const sinceMs = nowMs - HISTORY_MINUTES * HISTORY_MINUTE_MS;
  const [page, minutes, policy] = await Promise.all([
    readEntries(redis, address, { kind: 'change', limit: MOST_ENTRIES, sinceMs }),
    readHistory(redis, limiterKeys(address), sinceMs),
    readPolicy(redis, address),
  ]);
  const errorsBelow = mostErrors(policy);
  const { stand, why } = goodRevision(page.entries, minutes, { nowMs, now, errorsBelow });
  if (stand === null) {
    throw new WishFault(
      (field) =>
        `${name} has no good revision to go back to. ${why} \`flyball audit ${name}\` lists all; ${field('toMs')} goes to what held at a time.`,
      NO_REVISION,
    );
  }
  const { epoch, revision } = stand;
  const words = `revision ${revision}, the last good one`;
  return { epoch, revision, after: stand.after, words, chosen: 'good', why };
}

/** How what a rollback took back comes again. */
function takesBack(name: string, revision: number): string {
  return `To take that rollback itself back: \`flyball rollback ${name} ${revision - 1}\`.`;
}

async function heldAt(
  redis: RedisClient,
  address: LimiterAddress,
  atMs: number,
  nowMs: number,
): Promise<RollbackTarget> {
  const { name } = address;
  const when = (iso(atMs) ?? `${atMs} ms`).replace(/\.\d+Z$/, 'Z');
  if (atMs >= nowMs) {
    throw new WishFault(
      (field) => `${when} is still to come: ${field('toMs')} takes a time that has been.`,
      NO_REVISION,
    );
  }
  const read = { kind: 'change', limit: 1 } as const;
  const page = await readEntries(redis, address, { ...read, untilMs: atMs });
  const entry = page.entries[0];
  if (entry === undefined || entry.body.after === null) {
    throw none(
      `what ${name} held at ${when} is not known: no entry that old is kept. \`flyball audit ${name}\` lists those that are.`,
    );
  }
  return {
    ...after(entry),
    words: `revision ${entry.revision}, in force at ${when}`,
    chosen: 'before',
  };
}

function after(entry: StoredEntry): RollbackTarget {
  return { epoch: entry.epoch, revision: entry.revision, after: entry.body.after! };
}

/** Of what the services report: the share of answers that may fail. */
function mostErrors(policy: Policy | null): number | undefined {
  for (const [name, { below }] of Object.entries(policy?.objective ?? {})) {
    const signal = policy?.signals[name];
    const plain = signal?.source === 'telemetry' && signal.stat === 'errorRatio';
    if (plain && signal.code === undefined && below !== undefined) return below;
  }
  return undefined;
}

async function lastSeen(redis: RedisClient, address: LimiterAddress): Promise<Seen | null> {
  const [text = null] = await redis.mget(limiterKeys(address).status);
  const { sample, atMs } = parseStatus(text) ?? {};
  return sample === undefined || atMs === undefined ? null : { sample, atMs };
}

function none(message: string): FlyballError {
  return new FlyballError(NO_REVISION, message);
}
