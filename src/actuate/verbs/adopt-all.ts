/** Adopts policies for a person, each limiter by itself: what is no longer as the person was shown is left alone. Stage: actuate. */
import { setTimeout } from 'node:timers/promises';
import type { Params } from '../../redis/params.js';
import type { RedisClient } from '../actuator.js';
import { type AdoptOutcome, adopt, type LoadedPolicy } from '../adopt.js';
import { type CanaryWish, tryFirst } from '../canary.js';
import type { Actor } from '../entry.js';
import { movesSince, type Stood } from './stood.js';

export interface AdoptStep {
  loaded: LoadedPolicy;
  /** What the person was shown; null: the limiter had no params. */
  stood: Stood | null;
  /** It is adopted, and what is in force has drifted from it. */
  mends?: boolean;
  /** Not at any other revision either, whoever made it. */
  exact?: boolean;
}

export interface AdoptResult {
  limiter: string;
  /** `canary`: a part of the subjects has it first; `moved`: it is no longer what was shown; `refused`: it may not be; `failed`: a fault. */
  status: 'created' | 'changed' | 'canary' | 'unchanged' | 'moved' | 'refused' | 'failed';
  epoch: number | null;
  revision: number | null;
  sentence: string;
}

export interface AdoptAllOptions {
  actor: Actor;
  /** The person's own words, kept in the entries. */
  why?: string | undefined;
  prefix?: string | undefined;
  /** Changes run for a percent of the subjects first. */
  canary?: CanaryWish | undefined;
  /** Wall time of the entries, ms. */
  nowMs(): number;
}

/** It takes milliseconds and wins against any writer that pauses; this bounds the other races. */
const CONTEND_MS = 15_000;
const PAUSE_MS = 5;

/** One limiter that cannot be adopted does not keep the others from it. */
export async function adoptAll(
  redis: RedisClient,
  steps: readonly AdoptStep[],
  options: AdoptAllOptions,
): Promise<AdoptResult[]> {
  const results: AdoptResult[] = [];
  for (const step of steps) {
    try {
      results.push(await adoptOne(redis, step, options));
    } catch (error) {
      const limiter = step.loaded.policy.limiter.name;
      const sentence = (error as Error).message;
      results.push({ limiter, status: 'failed', epoch: null, revision: null, sentence });
    }
  }
  return results;
}

/** The same of one limiter; what cannot be asked of Redis rejects. */
export async function adoptOne(
  redis: RedisClient,
  step: AdoptStep,
  options: AdoptAllOptions,
): Promise<AdoptResult> {
  return resultOf(step.loaded.policy.limiter.name, await adoptStep(redis, step, options));
}

async function adoptStep(
  redis: RedisClient,
  { loaded, stood, mends = false, exact = false }: AdoptStep,
  { actor, why, prefix, canary, nowMs }: AdoptAllOptions,
): Promise<AdoptOutcome> {
  const moved = (params: Params | null, redisMs: number) => {
    // Somebody else has adopted the very same: there is nothing left to do.
    if (params?.policyHash === loaded.hash && !mends) return null;
    const told = movesSince(stood, params, redisMs, exact);
    return told.length === 0 ? null : `it has moved since: ${told.join('; ')}`;
  };
  const giveUpAtMs = performance.now() + CONTEND_MS;
  for (;;) {
    const options = { actor, why, prefix, moved, again: mends, leaseMs: 0, nowMs: nowMs() };
    const outcome =
      canary === undefined || mends
        ? await adopt(redis, loaded, options)
        : await tryFirst(redis, loaded, canary, options);
    if (outcome.status !== 'refused' || outcome.reason !== 'write') return outcome;
    const { reply } = outcome;
    const again =
      reply.status === 'refused' && ['revision', 'head', 'exists'].includes(reply.reason);
    if (!again || performance.now() > giveUpAtMs) return outcome;
    await setTimeout(PAUSE_MS);
  }
}

function resultOf(limiter: string, outcome: AdoptOutcome): AdoptResult {
  if (outcome.status === 'unchanged') {
    const sentence = 'it is adopted already';
    return { limiter, status: 'unchanged', epoch: null, revision: null, sentence };
  }
  if (outcome.status === 'refused') {
    const status = outcome.reason === 'moved' ? 'moved' : 'refused';
    return { limiter, status, epoch: null, revision: null, sentence: outcome.sentence };
  }
  const { epoch, revision, sentence } = outcome;
  const status = outcome.status === 'restored' ? 'created' : outcome.status;
  return { limiter, status, epoch, revision, sentence };
}
