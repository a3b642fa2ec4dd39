/** The best constant limits of a scenario, phase by phase: what a controller is measured against. Stage: simulate. */
import { type Controller, constant } from './controllers.js';
import type { Second } from './counts.js';
import type { Enforced } from './gate.js';
import type { Plant } from './plant.js';
import { plantOf, type RunOptions, runScenario } from './run.js';

/** In-flight caps and rates that are tried, as multiples of what the service needs at its capacity. */
const CAPS = [0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2.2];
const RATES = [0.25, 0.5, 0.7, 0.85, 0.95, 1.05, 1.2, 2];
const NEVER_BINDS = 1e9;
/** What was admitted in vain counts against a limit, at half a good answer. */
const WASTE = 0.5;
/** A phase is judged with the seconds after it, so that it leaves no queue behind. */
const AFTER_S = 10;
/** Of all that is offered: nothing can be much better, so no further limit is tried. */
const ALL = 0.998;

export interface Best {
  seconds: Second[];
  /** The limits of each phase. */
  plan: { fromS: number; rate: number; inFlightMax: number }[];
}

/**
 * Greedy, phase after phase: every candidate goes on from where the best of the phases before it has led. Constant
 * caps and constant rates are tried apart; of the two plans the better one is taken.
 */
export function bestConstant(options: RunOptions): Best {
  const { capacityPerSecond, service } = options;
  const appMs = service.app.meanMs + (service.pool?.hold.meanMs ?? 0) + service.upstreamMs;
  const needed = Math.max(2, (2 * capacityPerSecond * appMs) / 1000);
  const caps = CAPS.map((share) => ({
    rate: NEVER_BINDS,
    inFlightMax: Math.max(1, Math.round(share * needed)),
  }));
  const rates = RATES.map((share) => ({ rate: share * capacityPerSecond, inFlightMax: 0 }));
  const free = { rate: NEVER_BINDS, inFlightMax: 0 };
  const [byCap, byRate] = [search(options, [...caps, free]), search(options, [...rates, free])];
  const { plan } = byCap.worth >= byRate.worth ? byCap : byRate;
  return { plan, seconds: runScenario(options, byPlan(plan)) };
}

type Limits = Pick<Enforced, 'rate' | 'inFlightMax'>;

interface Tried {
  limits: Limits;
  /** With the seconds after the phase, and of the phase alone. */
  worth: number;
  within: number;
  offered: number;
  /** The plant at the end of the phase. */
  end: Plant;
}

/** `candidates` from the tightest to the widest: every second one is tried, then what lies beside the best. */
function search(
  options: RunOptions,
  candidates: readonly Limits[],
): { plan: Best['plan']; worth: number } {
  const { scenario } = options;
  const plan: Best['plan'] = [];
  let trunk = plantOf(options, true);
  let worth = 0;
  for (let k = 0; k < scenario.phases.length; k++) {
    const fromS = scenario.phases[k]!;
    const toS = scenario.phases[k + 1] ?? scenario.durationS;
    const untilS = Math.min(scenario.durationS, toS + AFTER_S);
    const tried: (Tried | undefined)[] = candidates.map(() => undefined);
    let best = -1;
    const attempt = (i: number): boolean => {
      if (i < 0 || i >= candidates.length || tried[i] !== undefined) return false;
      const result = tryOut(trunk, candidates[i]!, toS, untilS);
      tried[i] = result;
      if (best < 0 || result.worth > tried[best]!.worth) best = i;
      return result.worth >= ALL * result.offered;
    };
    let done = false;
    for (let i = candidates.length - 2; i >= 0 && !done; i -= 2) done = attempt(i);
    if (!done && !attempt(best + 1)) attempt(best - 1);
    const chosen = tried[best]!;
    trunk = chosen.end;
    worth += chosen.within;
    plan.push({ fromS, ...chosen.limits });
  }
  return { plan, worth };
}

function tryOut(trunk: Plant, limits: Limits, toS: number, untilS: number): Tried {
  const plant = trunk.fork();
  plant.enforce(enforcedOf(limits));
  plant.run(1000 * toS);
  const within = value(plant.seconds);
  const end = plant.fork();
  plant.run(1000 * untilS);
  const offered = plant.seconds.reduce((sum, second) => sum + second.offered, 0);
  return { limits, worth: value(plant.seconds), within, offered, end };
}

function value(seconds: readonly Second[]): number {
  return seconds.reduce(
    (sum, { good, late, timedOut }) => sum + good - WASTE * (late + timedOut),
    0,
  );
}

function enforcedOf({ rate, inFlightMax }: Limits): Enforced {
  return { rate, capacity: Math.max(1, rate / 10), inFlightMax, generation: 0 };
}

/** Limits that change with the phases, known beforehand. */
function byPlan(plan: Best['plan']): Controller {
  let index = 0;
  return {
    ...constant(enforcedOf(plan[0]!)),
    get dueMs() {
      return (plan[index + 1]?.fromS ?? Number.POSITIVE_INFINITY) * 1000;
    },
    due: () => enforcedOf(plan[++index]!),
  };
}
