/** What the guards held back of a proposal, for its sentence. Stage: guard. */
import { num } from '../decide/reasons.js';
import type { Decision, Proposal } from '../decide/types.js';

/** `would be rate 210/s: the slew guard held the rest (a raise is at most × 2)`, or nothing. */
export function heldBack(wanted: Proposal, decided: Decision): string {
  const spoke = decided.verdicts.filter(({ sentence }) => sentence !== decided.why);
  const parts: string[] = [];
  if (Math.round(wanted.inFlightMax) !== decided.inFlightMax) {
    parts.push(`cap ${num(wanted.inFlightMax)}`);
  }
  if (differs(wanted.rate, decided.rate)) parts.push(`rate ${num(wanted.rate)}/s`);
  if (spoke.length === 0 || parts.length === 0) return '';
  const names = spoke.map(({ guard }) => guard).join(', ');
  const why = spoke.flatMap(({ sentence }) => sentence ?? []).join('; ');
  const what = decided.change ? 'the rest' : 'it';
  return `would be ${parts.join(', ')}: guard ${names} held ${what} (${why})`;
}

/** What is rounded for storage is not held back. */
function differs(wanted: number, decided: number): boolean {
  return Math.abs(wanted - decided) > 0.005 * Math.max(Math.abs(decided), 1);
}
