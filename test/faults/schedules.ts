/** Fault schedules drawn from a seed, and what runs one: the same seed is the same steps at the same moments. */

import { readParams } from '../../src/actuate/actuator.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import { effectiveAtUs } from '../../src/redis/effective.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { seeded } from '../../src/sim/random.js';
import { MOVED, ownOf, WATCHED } from '../support/fault-policies.js';
import {
  type FaultSpan,
  type LimiterRecord,
  type RunRecord,
  watchLimiter,
} from '../support/fault-record.js';
import {
  alive,
  deadlineMs,
  gone,
  machinePace,
  type Rig,
  type RigOptions,
  startRig,
} from '../support/fault-rig.js';
import { check, type Report } from './checker.js';
import { countsOf } from './fault-decisions.js';
import { type Figures, figuresOf } from './fault-figures.js';
import { type Fault, OTHER_FAULTS, REDIS_FAULTS } from './fault-kinds.js';

export interface Step {
  fault: string;
  atMs: number;
  forMs: number;
  /** What the fault draws by: which process, which way. */
  draw: number;
}

export interface Schedule {
  seed: number;
  rig: RigOptions;
  steps: Step[];
  /** At the end every daemon is killed, and none comes back. */
  daemonsDie: boolean;
}

const LAST_MS = 5_600;
const MEASURED = ['upstream fails', 'leader killed', 'failover to a replica that lags'] as const;
const ALL: Record<string, Fault> = { ...REDIS_FAULTS, ...OTHER_FAULTS };

/** One schedule of at most 6 s; two lanes of faults, one after the other within a lane. */
export function drawSchedule(seed: number): Schedule {
  const random = seeded(seed);
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const rig: RigOptions = {
    redis: one(['plain', 'kept', 'pair']),
    daemons: one([2, 2, 3]),
    services: one([2, 3]),
    differ: random() < 0.2,
    perSecond: one([30, 45, 60]),
    law: one(['adaptive', 'aimd']),
    second: one(['shadow', 'recommend']),
    draw: one(['each', 'each', 'block']),
    onRedisError: one(['local', 'local', 'closed']),
  };
  const lane = (faults: Record<string, Fault>, most: number, first?: string): Step[] => {
    const names = Object.keys(faults).filter((name) => faults[name]!.when?.(rig) ?? true);
    const steps: Step[] = [];
    let atMs = 200 + random() * 500;
    while (steps.length < most) {
      const fault: string = first !== undefined && steps.length === 0 ? first : one(names);
      const [least, longest] = faults[fault]!.ms;
      const forMs = least + random() * (longest - least);
      if (atMs + forMs > LAST_MS) break;
      const step = { fault, atMs: Math.round(atMs), forMs: Math.round(forMs), draw: random() };
      // A replica takes over once: there is no other behind it.
      if (!steps.some((each) => each.fault === fault)) steps.push(step);
      atMs += forMs + 200 + random() * 600;
    }
    return steps;
  };
  const first = random() < 0.4 ? 'upstream fails' : undefined;
  const steps = [
    ...lane(REDIS_FAULTS, one([1, 1, 2])),
    ...lane(OTHER_FAULTS, one([1, 2, 3]), first),
  ].sort((a, b) => a.atMs - b.atMs);
  const daemonsDie = random() < 0.25;
  if (seed % 10 !== 0) return { seed, rig, steps, daemonsDie };
  // Every tenth holds one fault alone, so that what it shows of times is that fault's.
  const fault = MEASURED[(seed / 10) % MEASURED.length]!;
  const alone = { fault, atMs: 400, forMs: ALL[fault]!.ms[1], draw: random() };
  return { seed, rig: { ...rig, redis: 'pair' }, steps: [alone], daemonsDie };
}

/** A line a step, for people. */
export function scheduleText({ seed, rig, steps, daemonsDie }: Schedule): string {
  const head = `seed ${seed}: ${rig.daemons} daemons${rig.differ ? ', one with another policy' : ''}, ${rig.services} services (${rig.draw}, ${rig.onRedisError}), Redis ${rig.redis}, ${rig.law}, the other ${rig.second}`;
  const each = steps.map(({ fault, atMs, forMs }) => `  ${atMs} ms: ${fault} for ${forMs} ms`);
  return [head, ...each, ...(daemonsDie ? ['  at the end: every daemon killed'] : [])].join('\n');
}

export interface Outcome {
  schedule: Schedule;
  report: Report;
  figures: Figures;
  /** 1: ticks of 100 ms; on a busy machine as many times longer. */
  pace: number;
  /** Faults that began. */
  injected: number;
  record: RunRecord;
}

/** Before any fault: the machine did not start the processes in time. Nothing was tried, so nothing was held. */
export class NotRun extends Error {}

/** How often one that could not be run is tried again. */
const TRIES = 3;
const LOOK_MS = 50;
/** How long a system may take to come back on a machine that is busy with other things. */
const BACK_MS = 30_000;
const READY_MS = 120_000;
const pause = (ms: number) => new Promise((ok) => setTimeout(ok, ms));
const nowMs = () => performance.timeOrigin + performance.now();

/**
 * Plays a schedule on real processes, waits until all is well again, and checks. One whose processes did not start in
 * time is begun anew, and told of; one that ran is never played twice.
 */
export async function runSchedule(
  schedule: Schedule,
  onNotRun: (why: string) => void = () => {},
): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const pace = await machinePace();
    let rig: Rig | null = null;
    try {
      rig = await startRig({ ...schedule.rig, pace }).catch((error: Error) => {
        throw new NotRun(error.message);
      });
      return { ...(await play(schedule, rig)), pace };
    } catch (error) {
      if (!(error instanceof NotRun)) throw error;
      onNotRun(error.message);
      if (tries === TRIES) throw error;
    } finally {
      await rig?.close();
    }
  }
}

async function play(schedule: Schedule, rig: Rig): Promise<Omit<Outcome, 'pace'>> {
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
  try {
    const ready = await comeBack(rig, limiters, READY_MS);
    if (ready !== null) throw new NotRun(`not ready after ${READY_MS / 1000} s: ${ready}`);
    const startMs = nowMs();
    await Promise.all(schedule.steps.map((step) => inject(rig, step, startMs, faults)));
    const back = await comeBack(rig, limiters, BACK_MS);
    if (back !== null) failures.push(`did not come back within ${BACK_MS / 1000} s: ${back}`);
    await pause(300);
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
    ...{ limiters, faults, deadlineMs, onRedisError: schedule.rig.onRedisError },
    own: ownOf(schedule.rig.draw),
    autopilotLost: schedule.daemonsDie ? await persist(() => loseDaemons(rig)) : null,
  };
  const lines = rig.lines();
  const heard = rig.heard();
  for (const limiter of limiters) {
    const { bucket } = limiterKeys({ name: limiter.name });
    limiter.lines = lines.filter((line) => line.limiter === limiter.name);
    limiter.heard = heard.filter((each) => each.bucket === bucket);
  }
  const report = await check(record);
  report.violations.unshift(...failures, ...rig.died);
  return { schedule, report, figures: figuresOf(record), injected: faults.length, record };
}

async function inject(rig: Rig, step: Step, startMs: number, faults: FaultSpan[]): Promise<void> {
  const fault = ALL[step.fault]!;
  await pause(Math.max(0, startMs + step.atMs - nowMs()));
  const span: FaultSpan = {
    ...{ name: step.fault, fromMs: nowMs(), toMs: null },
    loses: fault.loses?.(rig.options) ?? false,
  };
  faults.push(span);
  const end = await persist(() => fault.begin(rig, step.draw, step.forMs));
  await pause(Math.max(0, startMs + step.atMs + step.forMs - nowMs()));
  await persist(end);
  span.toMs = nowMs();
}

/** What meets another fault (Redis is away) is tried again: each fault begins, and each ends. */
async function persist<T>(act: () => Promise<T>): Promise<T> {
  const giveUpAt = nowMs() + BACK_MS;
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
async function comeBack(rig: Rig, limiters: LimiterRecord[], ms: number): Promise<string | null> {
  const giveUpAt = nowMs() + ms;
  for (;;) {
    const missing = await whatIsMissing(rig, limiters).catch((error) => `Redis: ${error.message}`);
    if (missing === null || nowMs() > giveUpAt) return missing;
    await pause(100);
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
  const lines = rig.lines();
  for (const { name } of rig.services) {
    const last = lines.findLast((line) => line.service === name && line.limiter === MOVED);
    const counts = last === undefined ? [] : countsOf(last);
    const stale = last === undefined || nowMs() - last.atMs > 1_000;
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

/** Every daemon dies; after the stated time Redis alone has brought the safe values, and a person can still act. */
async function loseDaemons(rig: Rig): Promise<RunRecord['autopilotLost']> {
  for (const { child } of rig.daemons) {
    child?.kill('SIGKILL');
    if (child) await gone(child);
  }
  const address = { name: MOVED };
  const glided = async () => {
    const { params, nowUs } = await readParams(rig.redis(), address);
    if (params === null) throw new Error(`${MOVED} has no params`);
    const lastWord = Math.max(params.validUntil, params.pinnedUntil, params.frozenUntil);
    const over = lastWord + params.lostAfterMs + params.lostOverMs;
    return { params, nowUs, leftMs: over - nowUs / 1000 };
  };
  await pause(Math.max(0, (await glided()).leftMs) + 50);
  const { params, nowUs } = await glided();
  // The times that are over hold nobody any more.
  const past = { ...params, pinnedUntil: 0, frozenUntil: 0 };
  const effective = effectiveAtUs(params, nowUs);
  const outcome = await applyVerb(rig.redis(), address, pin({ rate: 20 }, 60_000), {
    ...{ actor: 'kim@test (unverified)', dryRun: false, nowMs: () => Date.now() },
    approve: async () => true,
  });
  return { effective, params: past, undone: outcome.status };
}
