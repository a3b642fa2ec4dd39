/** What the guards held back of a proposal, as numbers and for its sentence. Stage: guard. */
import { num } from '../decide/reasons.js';
import type { KeptBack } from '../decide/told-types.js';
import type { Decision, Proposal } from '../decide/types.js';

/** Null: nothing. */
export function heldBack(wanted: Proposal, decided: Decision): KeptBack | null {
  const guards = spoke(decided).map(({ guard }) => guard);
  const held: KeptBack = { guards };
  if (Math.round(wanted.inFlightMax) !== decided.inFlightMax) {
    held.inFlightMax = Number(num(wanted.inFlightMax));
  }
  if (differs(wanted.rate, decided.rate)) held.rate = Number(num(wanted.rate));
  const moved = held.rate !== undefined || held.inFlightMax !== undefined;
  return guards.length > 0 && moved ? held : null;
}

/** `would be rate 210/s: the slew guard held the rest (a raise is at most × 2)`. */
export function heldBackText({ guards, rate, inFlightMax }: KeptBack, decided: Decision): string {
  const parts: string[] = [];
  if (inFlightMax !== undefined) parts.push(`cap ${num(inFlightMax)}`);
  if (rate !== undefined) parts.push(`rate ${num(rate)}/s`);
  const why = spoke(decided).flatMap(({ sentence }) => sentence ?? []);
  const what = decided.change ? 'the rest' : 'it';
  return `would be ${parts.join(', ')}: guard ${guards.join(', ')} held ${what} (${why.join('; ')})`;
}

/** Those whose word is not the decision's own already. */
function spoke({ verdicts, why }: Decision): Decision['verdicts'] {
  return verdicts.filter(({ sentence }) => sentence !== why);
}

/** What is rounded for storage is not held back. */
function differs(wanted: number, decided: number): boolean {
  return Math.abs(wanted - decided) > 0.005 * Math.max(Math.abs(decided), 1);
}
