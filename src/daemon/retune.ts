/** Tuning by schedule: asks of state whether a run is overdue, judges the history, and lets a turn act on it. Stage: daemon. */
import { entryValues, type RedisClient, readParams } from '../actuate/actuator.js';
import type { LoadedPolicy } from '../actuate/adopt.js';
import {
  DEFAULT_SINCE_MS,
  factsOf,
  keepLastRun,
  type LastRun,
  readLastRun,
  recommendFromHistory,
  tuneDetail,
  tunedChange,
} from '../actuate/tuning.js';
import { moved } from '../actuate/verbs/plan.js';
import type { InForceView } from '../decide/types.js';
import type { Logger } from '../log.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import type { Recommendation } from '../tune/recommend.js';
import { lastDue, scheduleOf } from '../tune/schedule.js';
import type { createWriter } from './writer.js';

export interface Retune {
  /** Outside the turn: if a run is overdue, the history is read and judged. Never rejects. */
  ask(adopted: LoadedPolicy): Promise<void>;
  /** Within the turn: writes or notes what was judged. True: params were changed, the turn is over. */
  act(adopted: LoadedPolicy, params: Params, view: InForceView, nowMs: number): Promise<boolean>;
}

/** A clock that was set back must not silence the schedule until it has caught up. */
const AHEAD_MS = 3_600_000;

export function createRetune(deps: {
  redis: RedisClient;
  address: LimiterAddress;
  writer: ReturnType<typeof createWriter>;
  log: Logger;
}): Retune {
  const { redis, address, writer, log } = deps;
  const limiter = address.name;
  let judged: { policyHash: string; tuned: Recommendation } | null = null;
  let asking = false;
  let failing = false;

  async function isOverdue({ policy }: LoadedPolicy, nowMs: number): Promise<boolean> {
    const schedule = scheduleOf(policy.tune);
    const dueMs =
      schedule === null ? null : lastDue(schedule, policy.tune?.timezone ?? 'UTC', nowMs);
    if (dueMs === null) return false;
    const last = await readLastRun(redis, address);
    if (last === null || last.atMs > nowMs + AHEAD_MS) {
      // What was due before anyone knew of the schedule is not made up for.
      await ended(nowMs, 'begun', 'The schedule was seen for the first time.');
      return false;
    }
    return last.atMs < dueMs;
  }

  async function judge(adopted: LoadedPolicy): Promise<void> {
    const { params, nowUs } = await readParams(redis, address);
    const nowMs = Math.floor(nowUs / 1000);
    if (params === null || params.policyHash !== adopted.hash) return;
    if (!(await isOverdue(adopted, nowMs))) return;
    const { policy } = adopted;
    const sinceMs = policy.tune?.since ?? DEFAULT_SINCE_MS;
    const of = { policy, params, nowMs, sinceMs, facts: factsOf(policy) };
    const found = await recommendFromHistory(redis, address, of);
    if (found.status === 'refused') await ended(nowMs, 'refused', found.sentence);
    else judged = { policyHash: adopted.hash, tuned: found };
  }

  async function ended(atMs: number, outcome: LastRun['outcome'], sentence: string): Promise<void> {
    await keepLastRun(redis, address, { atMs: Math.floor(atMs), outcome, sentence });
    log.info({ event: 'tuned', limiter, outcome }, `${limiter}, by schedule: ${sentence}`);
  }

  async function recommendOnly(
    params: Params,
    tuned: Recommendation,
    to: Params,
    nowMs: number,
    why: string,
  ) {
    const [before, after] = [entryValues(params), entryValues(to)];
    const numbers = moved(before, after);
    const sentence = `Recommended from ${tuned.minutes.used} minutes of history, not applied (${why}): ${numbers}. ${tuned.rate.why}`;
    const detail = tuneDetail(tuned);
    await writer.note(params, { reason: 'tune', sentence, before, after, detail });
    await ended(nowMs, 'noted', sentence);
  }

  return {
    async ask(adopted) {
      if (asking || judged !== null || scheduleOf(adopted.policy.tune) === null) return;
      asking = true;
      try {
        await judge(adopted);
        failing = false;
      } catch (error) {
        // The next job asks again; an outage of Redis is told once.
        if (!failing) {
          log.warn(
            { event: 'tune_failed', limiter, err: error },
            `The history of ${limiter} could not be judged: ${(error as Error).message}. It is tried again.`,
          );
        }
        failing = true;
      } finally {
        asking = false;
      }
    },
    async act(adopted, params, view, nowMs) {
      if (judged === null) return false;
      const { tuned, policyHash } = judged;
      judged = null;
      if (policyHash !== adopted.hash) return false;
      if (view.held !== 'none') {
        await ended(nowMs, 'held', `It is ${view.held} by ${params.heldBy || 'a person'}.`);
        return false;
      }
      // Not now, but still overdue: the next job judges anew.
      if (view.state !== 'closed' || view.gliding) return false;
      const change = tunedChange(adopted.policy, params, tuned);
      if (Object.keys(change).length === 0) {
        await ended(nowMs, 'unchanged', 'The history recommends what is in force.');
        return false;
      }
      const to = { ...params, ...change };
      const { law } = adopted.policy.control;
      if (params.mode !== 'auto' || law === 'fixed') {
        const why = params.mode === 'auto' ? `law ${law}` : `mode ${params.mode}`;
        await recommendOnly(params, tuned, to, nowMs, why);
        return false;
      }
      const numbers = moved(entryValues(params), entryValues(to));
      const sentence = `Tuned by schedule from ${tuned.minutes.used} minutes of history: ${numbers}. ${tuned.rate.why}`;
      const detail = { ...tuneDetail(tuned), cause: 'schedule' };
      const request = { change, cause: 'schedule' as const, reason: 'tune', sentence, detail };
      const written = await writer.change(params, request);
      if (written) await ended(nowMs, 'applied', sentence);
      return written;
    },
  };
}
