/** `definePolicy`: the types that make a wrong name or unit in a policy a compile error. Stage: policy. */
import type { KindOf, TrippingStat } from './kinds.js';
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
type LevelFor<S extends SignalInput> = LevelOf[KindOf<S>];

/** Exactly one of below, above. */
type SideFor<S extends SignalInput> =
  | { below: LevelFor<S>; above?: never }
  | { above: LevelFor<S>; below?: never };

type ObjectiveFor<S extends SignalsInput, Name extends keyof S> = SideFor<S[Name]> &
  Omit<Objective, 'below' | 'above' | 'confirm'> & {
    /** Nothing is cut for it until one of these signals is past its level too: `{ dbWait: { above: 2 } }`. */
    confirm?: { [Witness in Exclude<keyof S, Name>]?: SideFor<S[Witness]> };
  };

/** An objective for each signal that has one; without signals there is none to give. */
type ObjectivesFor<S extends SignalsInput> = [keyof S] extends [never]
  ? Record<string, never>
  : { [Name in keyof S]?: ObjectiveFor<S, Name> };

/** Signals that can open a breaker, each with the level that fits it. */
type TripFor<S extends SignalsInput, Fields> = {
  [Name in keyof S & string]: S[Name]['stat'] extends TrippingStat
    ? Omit<Fields, 'on' | 'above'> & {
        /** Key of the signal it watches. */
        on: Name;
        /** Trips above this: a ratio for shares, a count for errors, the signal's own unit otherwise. */
        above: LevelFor<S[Name]>;
      }
    : never;
}[keyof S & string];

type OrInput = NonNullable<BreakerInput['or']>[number];
type BreakerFor<S extends SignalsInput> = TripFor<S, Omit<BreakerInput, 'or'>> & {
  /** Further levels: any of them trips it too. */
  or?: TripFor<S, OrInput>[];
};

/** A policy as its author writes it; the names of `signals` are the only ones others may use. */
export interface PolicyDefinition<S extends SignalsInput>
  extends Omit<PolicyInput, 'signals' | 'objective' | 'breaker'> {
  /** What is measured, by a name of your choice. */
  signals?: S;
  /** What should hold, by signal: `{ p95: { below: '250ms' } }`. */
  objective?: ObjectivesFor<NoInfer<S>>;
  /** Stops the traffic for a while when a signal passes a level. */
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
