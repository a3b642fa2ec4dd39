/** Fault schedules drawn from a seed, and what runs one: the same seed is the same steps at the same moments. */
import { seeded } from '../../src/sim/random.js';
import type { FaultSpan, RunRecord } from '../support/fault-record.js';
import { machinePace, type Rig, type RigOptions, startRig } from '../support/fault-rig.js';
import { check, type Report } from './checker.js';
import { type Figures, figuresOf } from './fault-figures.js';
import { type Fault, OTHER_FAULTS, REDIS_FAULTS } from './fault-kinds.js';
import { NotRun, nowMs, pause, persist, recordRun } from './play.js';

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
    redis: one(['plain', 'kept', 'pair', 'sentinel']),
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

/** How often one that could not be run is tried again. */
const TRIES = 3;

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
  const act = async (faults: FaultSpan[]) => {
    const startMs = nowMs();
    await Promise.all(schedule.steps.map((step) => inject(rig, step, startMs, faults)));
  };
  const { record, failures } = await recordRun(rig, act, schedule.daemonsDie);
  const report = await check(record);
  report.violations.unshift(...failures);
  const injected = record.faults.length;
  return { schedule, report, figures: figuresOf(record), injected, record };
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
