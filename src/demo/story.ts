/** The demo's story as plain data: phases, their lengths from `--seconds`, and the load of each. Stage: demo. */

export const PHASES = ['calm', 'surge', 'slowDatabase', 'upstreamFailure', 'calmAgain'] as const;
export type PhaseName = (typeof PHASES)[number];

/** What a person reads. */
export const PHASE_TITLES: Record<PhaseName, string> = {
  calm: 'calm',
  surge: 'surge to 10×',
  slowDatabase: 'database at half speed',
  upstreamFailure: 'payment upstream fails',
  calmAgain: 'calm again',
};

export interface Phase {
  name: PhaseName;
  /** Whole seconds from the start of the play. */
  from: number;
  seconds: number;
  /** Arrivals per second, before retries. */
  rate: number;
  /** 2: each wait inside the database takes twice as long. */
  databaseSlowdown: number;
  upstreamFails: boolean;
}

/** Calm load as a share of the knee; the surge is ten times the calm: four times what the service can do. */
export const CALM_SHARE = 0.4;
export const SURGE_TIMES = 10;

/** The first seconds of a disturbance, in which the loop is still finding out. */
export const SETTLE_SECONDS = 5;
export const SHORTEST_PLAY_SECONDS = 12;

const SLOW_DATABASE_SECONDS = 20;
const UPSTREAM_FAILURE_SECONDS = 10;
/** Up to this length all phases shrink alike; beyond it the two fixed ones keep their length. */
const FULL_LENGTH_SECONDS = 75;

/**
 * The phases of one play of `seconds` at the measured knee. The surge lasts until calm returns: the database
 * slows and the upstream fails while the load is still at its height.
 */
export function storyOf(seconds: number, knee: number): Phase[] {
  const shrink = Math.min(1, seconds / FULL_LENGTH_SECONDS);
  const slow = Math.max(2, Math.round(SLOW_DATABASE_SECONDS * shrink));
  const failing = Math.max(2, Math.round(UPSTREAM_FAILURE_SECONDS * shrink));
  const rest = seconds - slow - failing;
  const calm = Math.max(2, Math.round(rest * 0.22));
  const surge = Math.max(3, Math.round(rest * 0.34));
  const lengths: Record<PhaseName, number> = {
    calm,
    surge,
    slowDatabase: slow,
    upstreamFailure: failing,
    calmAgain: rest - calm - surge,
  };
  let from = 0;
  return PHASES.map((name) => {
    const quiet = name === 'calm' || name === 'calmAgain';
    const phase: Phase = {
      name,
      from,
      seconds: lengths[name],
      rate: knee * CALM_SHARE * (quiet ? 1 : SURGE_TIMES),
      databaseSlowdown: name === 'slowDatabase' ? 2 : 1,
      upstreamFails: name === 'upstreamFailure',
    };
    from += phase.seconds;
    return phase;
  });
}

/** The phase that holds at a second of the play; the last one after the end. */
export function phaseAt(phases: readonly Phase[], second: number): Phase {
  let found = phases[0]!;
  for (const phase of phases) if (second >= phase.from) found = phase;
  return found;
}

export function isDisturbance(name: PhaseName): boolean {
  return name === 'surge' || name === 'slowDatabase' || name === 'upstreamFailure';
}
