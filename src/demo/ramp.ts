/** Finds the knee: the best goodput that any fixed in-flight cap gives under overload, at full and half database speed. Stage: demo. */
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

/** Ten times the capacity that the service is built for, as in the story: every cap binds, at either speed. */
const OVERLOAD = 1000;

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
    { steps: [{ seconds: steps.length * stepSeconds, rate: OVERLOAD }], seed, retry: false },
    ({ second, good }) => {
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
