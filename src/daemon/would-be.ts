/** Recommend and shadow: the law runs on values of its own, which change no answer and are noted. Stage: daemon. */
import type { EntryValues } from '../actuate/entry.js';
import type { Decision, InForceView } from '../decide/types.js';
import type { LimiterState, Params } from '../redis/params.js';

/** At most one note a minute: a recommendation is read by people. */
const NOTE_EVERY_MS = 60_000;

/** Targets as the law would have stored them, and what was last noted. Part of the checkpoint. */
export interface WouldBe {
  /** Another policy begins anew. */
  policyHash: string;
  state: LimiterState;
  rate: number;
  capacity: number;
  inFlightMax: number;
  openUntilMs: number;
  changedAtMs: number;
  inStateSinceMs: number;
  noted: { rate: number; inFlightMax: number; state: LimiterState; atMs: number };
}

/** Begins at what is in force. */
export function startWouldBe(params: Params, nowMs: number): WouldBe {
  const { rate, capacity, inFlightMax, policyHash } = params;
  return {
    policyHash,
    state: 'closed',
    rate,
    capacity,
    inFlightMax,
    openUntilMs: 0,
    changedAtMs: nowMs,
    inStateSinceMs: nowMs,
    noted: { rate, inFlightMax, state: 'closed', atMs: 0 },
  };
}

/** The law's view as if its own values were in force: also open → half-open when the open time is over. */
export function wouldBeView(
  wouldBe: WouldBe,
  params: Params,
  view: InForceView,
  nowMs: number,
): { view: InForceView; wouldBe: WouldBe } {
  const lapsed = wouldBe.state === 'open' && nowMs >= wouldBe.openUntilMs;
  const now: WouldBe = lapsed
    ? { ...wouldBe, state: 'half-open', inStateSinceMs: wouldBe.openUntilMs }
    : wouldBe;
  const { state, rate, capacity, inFlightMax } = now;
  const probing = state === 'half-open';
  return {
    wouldBe: now,
    view: {
      ...view,
      state,
      gliding: false,
      rate: state === 'open' ? 0 : probing ? params.probeRate : rate,
      capacity: probing ? Math.max(1, params.probeRate) : capacity,
      inFlightMax,
      sinceChangeMs: Math.max(0, nowMs - now.changedAtMs),
      inStateMs: Math.max(0, nowMs - now.inStateSinceMs),
      target: { rate, capacity, inFlightMax },
    },
  };
}

/** The values after a decision that would have been written. */
export function moveWouldBe(wouldBe: WouldBe, decision: Decision, nowMs: number): WouldBe {
  const { state, rate, capacity, inFlightMax, openForMs = 0 } = decision;
  return {
    ...wouldBe,
    state,
    rate,
    capacity,
    inFlightMax,
    openUntilMs: state === 'open' ? nowMs + openForMs : 0,
    changedAtMs: nowMs,
    inStateSinceMs: state === wouldBe.state ? wouldBe.inStateSinceMs : nowMs,
  };
}

/** Have they left the last noted values by more than the dead band, and is a minute over? */
export function noteDue(wouldBe: WouldBe, deadBand: number, nowMs: number): boolean {
  const { noted } = wouldBe;
  if (noted.atMs > 0 && nowMs - noted.atMs < NOTE_EVERY_MS && nowMs >= noted.atMs) return false;
  return (
    wouldBe.state !== noted.state ||
    leaves(wouldBe.rate, noted.rate, deadBand) ||
    leaves(wouldBe.inFlightMax, noted.inFlightMax, deadBand)
  );
}

/** The same values, marked as noted. */
export function markNoted(wouldBe: WouldBe, nowMs: number): WouldBe {
  const { rate, inFlightMax, state } = wouldBe;
  return { ...wouldBe, noted: { rate, inFlightMax, state, atMs: nowMs } };
}

/** As an audit entry shows them. */
export function wouldBeValues(wouldBe: WouldBe, params: Params): EntryValues {
  const { state, rate, capacity, inFlightMax } = wouldBe;
  return { mode: params.mode, state, rate, capacity, inFlightMax };
}

function leaves(value: number, from: number, deadBand: number): boolean {
  return Math.abs(value - from) > deadBand * Math.max(from, Number.EPSILON);
}
