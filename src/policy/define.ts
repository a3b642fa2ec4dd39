/** `definePolicy`: the types that make a wrong name or unit in a policy a compile error. Stage: policy. */
import type { KindOf } from './kinds.js';
import type { PolicyInput } from './schema.js';
import type { DurationText, RatioText } from './units.js';

type SignalInput = NonNullable<PolicyInput['signals']>[string];
type Objective = NonNullable<PolicyInput['objective']>[string];
type BreakerInput = NonNullable<PolicyInput['breaker']>;
type SignalsInput = Record<string, SignalInput>;

/** How a level is written, by what the signal is measured in. */
interface LevelOf {
  duration: number | DurationText;
  ratio: number | RatioText;
  count: number;
  perSecond: number;
}
type LevelFor<S extends SignalInput> = LevelOf[KindOf<S['stat']>];

/** Exactly one of below, above. */
type ObjectiveFor<S extends SignalInput> = Omit<Objective, 'below' | 'above'> &
  ({ below: LevelFor<S>; above?: never } | { above: LevelFor<S>; below?: never });

/** An objective for each signal that has one; without signals there is none to give. */
type ObjectivesFor<S extends SignalsInput> = [keyof S] extends [never]
  ? Record<string, never>
  : { [Name in keyof S]?: ObjectiveFor<S[Name]> };

/** Signals whose failures a breaker can count, each with the level that fits it. */
type BreakerFor<S extends SignalsInput> = {
  [Name in keyof S & string]: S[Name]['stat'] extends 'errors' | 'errorRatio'
    ? Omit<BreakerInput, 'on' | 'above'> & {
        /** Key of the signal it watches: errors, or an error ratio. */
        on: Name;
        /** Trips above this: a ratio for error ratios, a count for errors. */
        above: LevelFor<S[Name]>;
      }
    : never;
}[keyof S & string];

/** A policy as its author writes it; the names of `signals` are the only ones others may use. */
export interface PolicyDefinition<S extends SignalsInput>
  extends Omit<PolicyInput, 'signals' | 'objective' | 'breaker'> {
  /** What is measured, by a name of your choice. */
  signals?: S;
  /** What should hold, by signal: `{ p95: { below: '250ms' } }`. */
  objective?: ObjectivesFor<NoInfer<S>>;
  /** Stops all traffic for a while when failures pass a level. */
  breaker?: BreakerFor<NoInfer<S>>;
}

/**
 * Writes down what should hold for one limiter; a policy file exports it as its default. It only types: the
 * policy stays plain data, and is checked when it is loaded (`flyball check`).
 */
// biome-ignore lint/complexity/noBannedTypes: no signals, so no names that others may use
export function definePolicy<const S extends SignalsInput = {}>(
  policy: PolicyDefinition<S>,
): PolicyInput {
  return policy as PolicyInput;
}
