/** A change of a policy runs for a percent of the subjects first: how that begins, and how it ends. Stage: actuate. */
import { concernsTakes, noCanaryWhy } from '../policy/canary-policy.js';
import type { Policy } from '../policy/schema.js';
import type { ActuateReply } from '../redis/calls.js';
import {
  CANARY_PATIENCE,
  type Canary,
  canaryName,
  canaryText,
  goesOn,
  isTried,
  parseCanary,
  restsAt,
} from '../redis/canary.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { type RedisClient, readParamsAnyhow, write } from './actuator.js';
import { adopt, keepAdopted, type LoadedPolicy, policyAddress } from './adopt.js';
import type { AdoptOptions, AdoptOutcome } from './adopt-types.js';
import { readAdopted } from './adopted-policy.js';
import { endedSentence, retireCanary } from './canary-end.js';
import { makeCanaryLimiter } from './canary-limiter.js';
import { standing } from './verbs/plan.js';

/** How much of the subjects, and for how long. */
export interface CanaryWish {
  percent: number;
  forMs: number;
}

/** What was read, and decided on: a write that comes after another one is refused by its revision. */
interface Found {
  params: Params;
  nowUs: number;
}

/** Until a canary that a person begins is judged, if they say nothing of it. */
export const JUDGED_AFTER_MS = 600_000;

/** Its text is kept under its hash for whoever leads when it has passed. */
const SPARE_MS = 3_600_000;

/**
 * As `adopt`, but a change goes through a canary if the policy says so and it can. A version that is tried, or whose
 * canary has ended, is left as it is; one that is adopted already ends the canary of another.
 */
export async function adoptOrTry(
  redis: RedisClient,
  loaded: LoadedPolicy,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const { canary } = loaded.policy;
  const address = policyAddress(loaded.policy, options.prefix);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  if (params === null) return adopt(redis, loaded, options);
  const found = { params, nowUs };
  const known = parseCanary(params.canary);
  if (known?.policy === loaded.hash) return { status: 'unchanged' };
  if (params.policyHash === loaded.hash) {
    if (isTried(known, nowUs / 1000)) {
      const why = `${loaded.file} says the adopted policy again`;
      const reply = await endCanary(redis, address, found, known, 'stopped', why, options);
      if (reply.status !== 'ok') return refusedBy(reply);
    }
    return adopt(redis, loaded, options);
  }
  if (canary === undefined) return adopt(redis, loaded, options);
  const wish = { percent: canary.percent, forMs: canary.for };
  const from = await readAdopted(redis, address, params.policyHash);
  if (from !== null && !concernsTakes(from.policy, loaded.policy)) {
    return adopt(redis, loaded, options);
  }
  const no = refusesCanary(from?.policy ?? null, loaded.policy, found, wish);
  if (no === null) return beginCanary(redis, loaded, wish, found, options);
  return adopt(redis, loaded, { ...options, why: `without its canary, since ${no}.` });
}

/** For a person who asks for a canary: a change that cannot have one is refused, and a new limiter has nothing to compare. */
export async function tryFirst(
  redis: RedisClient,
  loaded: LoadedPolicy,
  wish: CanaryWish,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const address = policyAddress(loaded.policy, options.prefix);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  if (params === null || params.policyHash === loaded.hash) return adopt(redis, loaded, options);
  const from = await readAdopted(redis, address, params.policyHash);
  const no =
    from !== null && !concernsTakes(from.policy, loaded.policy)
      ? 'it changes nothing that passes'
      : refusesCanary(from?.policy ?? null, loaded.policy, { params, nowUs }, wish);
  if (no === null) return beginCanary(redis, loaded, wish, { params, nowUs }, options);
  const sentence = `it cannot run for a part first: ${no}. Without a canary it is adopted at once`;
  return { status: 'refused', reason: 'canary', sentence };
}

/** Why it would have to be adopted at once; null: it can be tried. */
function refusesCanary(
  from: Policy | null,
  to: Policy,
  { params, nowUs }: Found,
  { percent }: CanaryWish,
): string | null {
  if (from === null) return 'the adopted policy cannot be read';
  return restsAt(params, nowUs / 1000) ?? noCanaryWhy(from, to, percent);
}

/**
 * Makes the canary's limiter, then says so in the params: services follow within two seconds. Two that begin at once
 * may each make it, but one write alone finds the revision it has read; who leads looks whether it is still the same.
 */
async function beginCanary(
  redis: RedisClient,
  loaded: LoadedPolicy,
  wish: CanaryWish,
  found: Found,
  options: AdoptOptions,
  anew?: { of: Canary; why: string },
): Promise<AdoptOutcome> {
  const { params, nowUs } = found;
  const address = policyAddress(loaded.policy, options.prefix);
  const moved = options.moved?.(params, nowUs / 1000) ?? null;
  if (moved !== null) return { status: 'refused', reason: 'moved', sentence: moved };
  const made = await makeCanaryLimiter(redis, loaded, wish.percent, found, options);
  if (made.status === 'refused' || made.status === 'unchanged') return made;
  const { percent, forMs } = wish;
  const since = Math.floor(nowUs / 1000);
  const until = since + forMs * CANARY_PATIENCE;
  const limiter = canaryName(address.name);
  const { kind, name } = options.actor;
  const by = anew === undefined ? (kind === 'person' ? name : undefined) : anew.of.by;
  const canary: Canary = {
    ...{ policy: loaded.hash, limiter, percent, since, forMs, until, epoch: made.epoch },
    ...(by === undefined ? {} : { by }),
  };
  const livesMs = Math.round(forMs * CANARY_PATIENCE + SPARE_MS);
  const key = limiterKeys(address).policyVersion(loaded.hash);
  // A version that was adopted before is kept already, for good; one that was tried, or fell out, for too short a time.
  if ((await redis.set(key, loaded.json, 'PX', livesMs, 'NX')) === null) {
    const leftMs = await redis.pttl(key);
    if (leftMs !== -1 && leftMs < livesMs) await redis.pexpire(key, livesMs);
  }
  const before = parseCanary(params.canary);
  const told =
    anew !== undefined
      ? ` It begins anew: ${anew.why}.`
      : isTried(before, since)
        ? endedSentence(before)
        : '';
  const sentence = `Policy ${loaded.hash.slice(0, 12)} of ${loaded.file} runs for ${percent} % of the subjects first, on ${limiter}, and is judged after ${spanWords(forMs)}; the whole may pass up to ${percent} % more meanwhile.${told}`;
  const reply = await writeCanary(redis, address, found, canary, options, {
    reason: 'canary_begins',
    sentence,
    detail: { canary, file: loaded.file, ...(goesOn(before) && { before }) },
  });
  if (reply.status !== 'ok') return refusedBy(reply);
  if (anew === undefined) await keepAdopted(redis, loaded, options, reply);
  return { status: 'canary', epoch: reply.epoch, revision: reply.revision, sentence };
}

/** The same version on a limiter made anew, its time from now on: what the old one has seen proves nothing. */
export function beginAnew(
  redis: RedisClient,
  loaded: LoadedPolicy,
  of: Canary,
  why: string,
  found: Found,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const { percent, forMs } = of;
  return beginCanary(redis, loaded, { percent, forMs }, found, options, { of, why });
}

/** Takes it back: nothing of the limiter itself has changed. */
export async function endCanary(
  redis: RedisClient,
  address: LimiterAddress,
  found: Found,
  canary: Canary,
  how: NonNullable<Canary['ended']>,
  why: string,
  options: AdoptOptions & { detail?: Record<string, unknown> },
): Promise<ActuateReply> {
  const ended = { ...canary, ended: how };
  const reply = await writeCanary(redis, address, found, ended, options, {
    reason: `canary_${how}`,
    sentence: endSentence(canary, how, why),
    detail: { canary, ...options.detail },
  });
  if (reply.status === 'ok') await retireCanary(redis, address);
  return reply;
}

export function endSentence(
  canary: Canary,
  how: NonNullable<Canary['ended']>,
  why: string,
): string {
  const word = { failed: 'failed', unproven: 'has proved nothing', stopped: 'was ended' }[how];
  return `The canary of policy ${canary.policy.slice(0, 12)} ${word}: ${why}. It is not tried again before its file changes.`;
}

function writeCanary(
  redis: RedisClient,
  address: LimiterAddress,
  { params, nowUs }: Found,
  canary: Canary,
  options: AdoptOptions,
  entry: { reason: string; sentence: string; detail: Record<string, unknown> },
): Promise<ActuateReply> {
  const { authority = { kind: 'person' as const }, actor, why } = options;
  const { values, settled } = standing({ params, nowMs: nowUs / 1000 });
  return write(
    redis,
    address,
    {
      ...{ authority, actor, cause: 'policy', policyHash: params.policyHash },
      expected: { epoch: params.epoch, revision: params.revision },
      change: { ...settled, canary: canaryText(canary) },
      reason: entry.reason,
      sentence: why === undefined ? entry.sentence : `${entry.sentence} Reason: ${why}`,
      ...{ before: values, after: values },
      detail: { ...entry.detail, ...(why === undefined ? {} : { why }) },
    },
    options,
  );
}

function refusedBy(reply: Extract<ActuateReply, { status: 'refused' }>): AdoptOutcome {
  const sentence = `the canary was not written: ${reply.reason} (${reply.detail})`;
  return { status: 'refused', reason: 'write', sentence, reply };
}

function spanWords(ms: number): string {
  if (ms % 60_000 === 0) return `${ms / 60_000} min`;
  return `${ms / 1000} s`;
}
