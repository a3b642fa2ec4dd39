/** The pure pipeline and the simulator as a public surface, for tests, simulations and tools. All stages. */
export { type Bounds, boundsOf, capacityFor } from './decide/bounds.js';
export { BREAKER_TABLE, type BreakerEvent, transition } from './decide/breaker.js';
export { enforcedNumbers } from './decide/enforced.js';
export { type Overload, overloadOf } from './decide/overload.js';
export { REASONS, type Reason } from './decide/reasons.js';
export { createDecideState, reviveDecideState } from './decide/state.js';
export { step } from './decide/step.js';
export type {
  DecideState,
  Decision,
  GuardVerdict,
  InForceView,
  Proposal,
  Sample,
  SignalEstimate,
  TrafficEstimate,
} from './decide/types.js';
export { LAW_VERSIONS } from './decide/types.js';
export {
  createEstimateState,
  type EstimateState,
  type Estimates,
  estimate,
} from './estimate/estimate.js';
export {
  expectSim,
  type SimExpectation,
  type SimMatchers,
  type SimSubject,
} from './expect-sim.js';
export { guard } from './guard/guard.js';
export { turn } from './guard/turn.js';
export { type ParseResult, parsePolicy, resolvePolicy } from './policy/parse.js';
export { type Policy, type PolicyInput, policySchema } from './policy/schema.js';
export type {
  Missing,
  Reading,
  Readings,
  TelemetryReading,
  ValueReading,
} from './sense/readings.js';
export type { Plant } from './sim/compare.js';
export { type Fit, fitPlant, type HistoryPoint, type NoFit } from './sim/fit.js';
export { SCENARIOS, type ScenarioName } from './sim/scenarios.js';
