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
/** Where nothing is denied and so much of all is good, nothing can be much better: no further limit is tried. */
const ALL = 0.98;

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
  denied: number;
  /** The plant at the end of the phase. */
  end: Plant;
}

/** Where the search begins: in the middle, where most phases have their best. */
const FIRST = 4;
/** A candidate is given up when so much more than the best seen in each second to come would not save it. */
const HOPE = 1.05;
const LOOK_S = 5;

/** `candidates` from the tightest to the widest: those two beside the best are tried, then those one beside it. */
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
    const tried = new Set<number>();
    /** The most that any has made of each second. */
    const most: number[] = [];
    let best: Tried | undefined;
    let bestAt = FIRST;
    /** Wider than what has denied nothing makes no difference. */
    let widest = candidates.length - 1;
    /** True: nothing can be better. */
    const attempt = (i: number): boolean => {
      if (i < 0 || i > widest || tried.has(i)) return false;
      tried.add(i);
      const result = tryOut(trunk, candidates[i]!, { fromS, toS, untilS }, most, best?.worth);
      if (result?.denied === 0) widest = Math.min(widest, i);
      if (result === null || (best !== undefined && result.worth <= best.worth)) return false;
      best = result;
      bestAt = i;
      return result.denied === 0 && result.worth >= ALL * result.offered;
    };
    const beside = (by: number) => {
      const from = bestAt;
      return attempt(from + by) || attempt(from - by);
    };
    attempt(FIRST) || beside(2) || beside(2) || beside(1);
    trunk = best!.end;
    worth += best!.within;
    plan.push({ fromS, ...best!.limits });
  }
  return { plan, worth };
}

/** Null: given up, as it cannot come near the best so far. */
function tryOut(
  trunk: Plant,
  limits: Limits,
  { fromS, toS, untilS }: { fromS: number; toS: number; untilS: number },
  most: number[],
  toBeat: number | undefined,
): Tried | null {
  let plant = trunk.fork();
  plant.enforce(enforcedOf(limits));
  let worth = 0;
  let within = 0;
  let offered = 0;
  let denied = 0;
  let end = plant;
  for (let s = fromS; s < untilS; ) {
    const nextS = Math.min(s < toS ? toS : untilS, s + LOOK_S);
    plant.run(1000 * nextS);
    plant.seconds.splice(0).forEach((second, i) => {
      const of = worthOf(second);
      worth += of;
      offered += second.offered;
      denied += second.denied;
      most[s + i - fromS] = Math.max(of, most[s + i - fromS] ?? 0);
    });
    s = nextS;
    if (s === toS) {
      within = worth;
      end = plant;
      plant = plant.fork();
    }
    const hope = most.slice(s - fromS).reduce((sum, of) => sum + of, 0);
    if (toBeat !== undefined && worth + HOPE * hope < toBeat) return null;
  }
  return { limits, worth, within, offered, denied, end };
}

function worthOf({ good, late, timedOut }: Second): number {
  return good - WASTE * (late + timedOut);
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
