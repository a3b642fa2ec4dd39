/** A rollout that a person set, and the policy's own: which of the two stands when a policy is adopted. Pure. Stage: actuate. */
import { createHash } from 'node:crypto';
import { parseRollout, type Rollout, rolloutText, rolloutWords } from '../redis/rollout.js';

/** What a policy says of its rollout, short: a person's stands for as long as this stays the same. */
export function rolloutMark(policys: Rollout | undefined): string {
  return createHash('sha256').update(rolloutText(policys), 'utf8').digest('hex').slice(0, 12);
}

/** The text to put in force, and what is to be told of it; empty: nothing. */
export function adoptedRollout(
  policys: Rollout | undefined,
  inForce: string,
): { text: string; told: string } {
  const now = parseRollout(inForce);
  if (now?.over !== undefined && now.over === rolloutMark(policys)) {
    return { text: inForce, told: `; the rollout that a person set stays: ${rolloutWords(now)}` };
  }
  const text = rolloutText(policys);
  const from = rolloutWords(now);
  const to = rolloutWords(parseRollout(text));
  return { text, told: from === to ? '' : `; rollout ${from} → ${to}` };
}
