/** What runs faults on a rig: waits until all is well, watches while they act, waits until all is well again, and keeps what the checker reads. */
import { readParams } from '../../src/actuate/actuator.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import { effectiveAtUs } from '../../src/redis/effective.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { MOVED, ownOf, WATCHED } from '../support/fault-policies.js';
import {
  type FaultSpan,
  type LimiterRecord,
  type RunRecord,
  watchLimiter,
} from '../support/fault-record.js';
import { alive, deadlineMs, gone, type Rig } from '../support/fault-rig.js';
import { countsOf } from './fault-decisions.js';

/** Before any fault: the machine did not start the processes in time. Nothing was tried, so nothing was held. */
export class NotRun extends Error {}

const LOOK_MS = 50;
/** How long a system may take to come back: its ticks and leases are as many times longer on a machine that is busy. */
const BACK_MS = 30_000;
const backMs = ({ options }: Rig) => BACK_MS * Math.min(4, options.pace ?? 1);
const READY_MS = 120_000;
export const pause = (ms: number) => new Promise((ok) => setTimeout(ok, ms));
export const nowMs = () => performance.timeOrigin + performance.now();

/** @param act injects faults and ends them again, and puts down when; @returns the record, and what did not come back */
export async function recordRun(
  rig: Rig,
  act: (faults: FaultSpan[], limiters: LimiterRecord[]) => Promise<void>,
  daemonsDie = false,
): Promise<{ record: RunRecord; failures: string[] }> {
  const watches = [MOVED, WATCHED].map((name) => watchLimiter(rig.redis, { name }));
  let watching = true;
  const watched = (async () => {
    while (watching) {
      // Redis may be away: what is missed now is there at the next look.
      for (const watch of watches) await watch.look().catch(() => {});
      await pause(LOOK_MS);
    }
  })();
  const faults: FaultSpan[] = [];
  const failures: string[] = [];
  const limiters = watches.map(({ limiter }) => limiter);
  let lost: Lost | null = null;
  try {
    const ready = await comeBack(rig, limiters, READY_MS);
    if (ready !== null) throw new NotRun(`not ready after ${READY_MS / 1000} s: ${ready}`);
    await act(faults, limiters);
    const back = await comeBack(rig, limiters, backMs(rig));
    if (back !== null) failures.push(`did not come back within ${backMs(rig) / 1000} s: ${back}`);
    await pause(300);
    if (daemonsDie) lost = await loseDaemons(rig);
    // Before the last look: no decision is later than the entries that are known.
    keepDecisions(rig, limiters);
  } finally {
    watching = false;
    await watched;
  }
  for (const watch of watches) await persist(watch.look);
  for (const limiter of limiters) {
    // Read between two looks that agree: a daemon goes on meanwhile.
    const { look } = watches.find((watch) => watch.limiter === limiter)!;
    await persist(() => settleEnd(rig, look, limiter));
    limiter.allowedPolicies = rig.allowed.get(limiter.name) ?? null;
  }
  const record: RunRecord = {
    ...{ limiters, faults, deadlineMs, onRedisError: rig.options.onRedisError },
    own: ownOf(rig.options.draw),
    autopilotLost: lost === null ? null : { ...lost, undone: await persist(() => undo(rig)) },
  };
  return { record, failures: [...failures, ...rig.died] };
}

function keepDecisions(rig: Rig, limiters: readonly LimiterRecord[]): void {
  const lines = rig.lines();
  const heard = rig.heard();
  for (const limiter of limiters) {
    const { bucket } = limiterKeys({ name: limiter.name });
    limiter.lines = lines.filter((line) => line.limiter === limiter.name);
    limiter.heard = heard.filter((each) => each.bucket === bucket);
  }
}

/** What meets another fault (Redis is away) is tried again: each fault begins, and each ends. */
export async function persist<T>(act: () => Promise<T>): Promise<T> {
  const giveUpAt = nowMs() + 2 * BACK_MS;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (nowMs() > giveUpAt) throw error;
      await pause(50);
    }
  }
}

/** Waits until every limiter is led and no longer moved by a fault, and services decide by Redis; else what is missing. */
export async function comeBack(
  rig: Rig,
  limiters: LimiterRecord[],
  ms: number,
): Promise<string | null> {
  const giveUpAt = nowMs() + ms;
  for (;;) {
    const missing = await whatIsMissing(rig, limiters).catch((error) => `Redis: ${error.message}`);
    if (missing === null || nowMs() > giveUpAt) return missing;
    await pause(200);
  }
}

async function whatIsMissing(rig: Rig, limiters: LimiterRecord[]): Promise<string | null> {
  for (const { name, leases } of limiters) {
    const { params, nowUs } = await readParams(rig.redis(), { name });
    if (params === null) return `${name} has no params`;
    const now = effectiveAtUs(params, nowUs);
    if (now.gliding) return `${name} glides to its safe values`;
    if (now.state !== 'closed') return `the breaker of ${name} is ${now.state}`;
    const pid = leases.at(-1)?.owner?.split(':')[1];
    const led = rig.daemons.some((each) => alive(each) && String(each.child!.pid) === pid);
    if (!led) return `nobody leads ${name} (${leases.at(-1)?.owner ?? 'no lease'})`;
  }
  for (const { name } of rig.services) {
    const last = rig.newest(name).findLast((line) => line.limiter === MOVED);
    const counts = last === undefined ? [] : countsOf(last);
    const stale = last === undefined || nowMs() - last.atMs > 1_000 * (rig.options.pace ?? 1);
    if (stale || counts.length === 0) return `${name} decides nothing`;
    const other = counts.find(({ source }) => !['redis', 'cached', 'block'].includes(source));
    if (other) return `${name} decides by ${other.source}`;
  }
  return null;
}

async function settleEnd(
  rig: Rig,
  look: () => Promise<void>,
  limiter: LimiterRecord,
): Promise<void> {
  for (;;) {
    const { params, nowUs } = await readParams(rig.redis(), { name: limiter.name });
    await look();
    const { params: again } = await readParams(rig.redis(), { name: limiter.name });
    if (params === null) return;
    if (again?.revision !== params.revision || again.epoch !== params.epoch) continue;
    limiter.end = { params, effective: effectiveAtUs(params, nowUs) };
    return;
  }
}

type Lost = Omit<NonNullable<RunRecord['autopilotLost']>, 'undone'>;

/** Every daemon dies; after the stated time Redis alone has brought the safe values. */
async function loseDaemons(rig: Rig): Promise<Lost> {
  for (const { child } of rig.daemons) {
    child?.kill('SIGKILL');
    if (child) await gone(child);
  }
  const glided = async () => {
    const { params, nowUs } = await readParams(rig.redis(), { name: MOVED });
    if (params === null) throw new Error(`${MOVED} has no params`);
    const lastWord = Math.max(params.validUntil, params.pinnedUntil, params.frozenUntil);
    const over = lastWord + params.lostAfterMs + params.lostOverMs;
    return { params, nowUs, leftMs: over - nowUs / 1000 };
  };
  await pause(Math.max(0, (await persist(glided)).leftMs) + 50);
  const { params, nowUs } = await persist(glided);
  // The times that are over hold nobody any more.
  const past = { ...params, pinnedUntil: 0, frozenUntil: 0 };
  return { effective: effectiveAtUs(params, nowUs), params: past };
}

/** A person can still act. */
async function undo(rig: Rig): Promise<string> {
  const { status } = await applyVerb(rig.redis(), { name: MOVED }, pin({ rate: 20 }, 60_000), {
    ...{ actor: 'kim@test (unverified)', dryRun: false, nowMs: () => Date.now() },
    approve: async () => true,
  });
  return status;
}
