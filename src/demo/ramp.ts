/** Finds the knee: the best goodput that any fixed in-flight cap gives under overload, at full and half database speed. Stage: demo. */
import { FlyballError } from '../errors.js';
import type { CheckoutDatabase } from './database.js';
import type { Stage } from './stage.js';

export interface Knee {
  fullSpeed: number;
  halfSpeed: number;
}

export interface RampStep {
  slowdown: number;
  cap: number;
  goodPerSecond: number;
}

export interface RampPlan {
  caps: readonly number[];
  /** Seconds counted at each cap, after one to settle. */
  counted: number;
}

/** About 30 s; for a short demo less than half of that. */
export function rampPlan(seconds: number): RampPlan {
  return seconds >= 60
    ? { caps: [10, 12, 16, 24, 40], counted: 2 }
    : { caps: [12, 16, 24], counted: 1 };
}

/** Three times the capacity that the service is built for: every cap binds, at either speed. */
const OVERLOAD = 300;
/** A fresh process is slow until its code is compiled. */
const WARM_SECONDS = 2;
/** Ten connections of 100 ms make 100 a second. Far below that the machine was busy with other things. */
const PLAUSIBLE_KNEE = 60;
const LOWEST_KNEE = 20;

/** Measures again, once, when the machine was too busy to tell; what is then still nonsense is a broken run. */
export async function measureKnee(
  measure: () => Promise<Knee>,
  say: (line: string) => void,
): Promise<Knee> {
  const first = await measure();
  if (first.fullSpeed >= PLAUSIBLE_KNEE) return first;
  say('Other work on this machine slowed the measurement down: once more.');
  const second = await measure();
  const better = second.fullSpeed > first.fullSpeed ? second : first;
  if (better.fullSpeed >= LOWEST_KNEE && better.halfSpeed > 0) return better;
  throw new FlyballError(
    'FLYBALL_E_DEMO_KNEE',
    `the checkout service gave ${Math.round(better.fullSpeed)} good answers/s at best, of about 100: this machine is too busy, or too small (two cores are needed). Try again when it is idle.`,
  );
}

/** One run of the generator over all caps, at full speed and then at half; `onStep` sees each as it is known. */
export async function runRamp(
  stage: Stage,
  database: CheckoutDatabase,
  plan: RampPlan,
  seed: number,
  onStep: (step: RampStep) => void,
): Promise<Knee> {
  const steps: RampStep[] = [1, 2].flatMap((slowdown) =>
    plan.caps.map((cap) => ({ slowdown, cap, goodPerSecond: 0 })),
  );
  const stepSeconds = plan.counted + 1;
  const service = await stage.startService('cap');

  function enter(step: RampStep | undefined) {
    if (!step) return;
    service.send({ type: 'cap', cap: step.cap });
    void database.setSlowdown(step.slowdown);
  }

  enter(steps[0]);
  await stage.load(
    {
      steps: [{ seconds: WARM_SECONDS + steps.length * stepSeconds, rate: OVERLOAD }],
      seed,
      retry: false,
    },
    (each) => {
      const second = each.second - WARM_SECONDS;
      if (second < 0) return;
      const { good } = each;
      const index = Math.floor(second / stepSeconds);
      const step = steps[index];
      if (!step) return;
      if (second % stepSeconds >= 1) step.goodPerSecond += good / plan.counted;
      if (second % stepSeconds === stepSeconds - 1) {
        onStep(step);
        enter(steps[index + 1]);
      }
    },
  );
  await service.stop();
  await database.settle();
  const best = (slowdown: number) =>
    Math.max(...steps.filter((s) => s.slowdown === slowdown).map((s) => s.goodPerSecond));
  return { fullSpeed: best(1), halfSpeed: best(2) };
}
