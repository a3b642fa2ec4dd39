/** Promote: a limiter goes up the ladder of trust (shadow, recommend, auto) on evidence, or down without. Pure. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import type { Policy } from '../../policy/schema.js';
import {
  type ByPerson,
  byPersonText,
  PERSONAL_NUMBERS,
  parseByPerson,
} from '../../redis/by-person.js';
import { MODES, type Mode } from '../../redis/params.js';
import { type Evidence, evidenceText, lacking } from '../evidence.js';
import { restingNumbers } from '../person-policy.js';
import { endCommand } from './ends.js';
import { type Facts, moved, type Planner, standing } from './plan.js';
import { WishFault } from './wish-fault.js';

export interface PromoteWish {
  /** `file`: what the policy says comes back. */
  to: Mode | 'file';
  evidence: Evidence;
  /** Up though the evidence is not enough. */
  anyway: boolean;
}

/** Stands until the policy's own `mode` becomes another. */
export function promote(wish: PromoteWish): Planner {
  return (facts) => {
    const { params, limiter, actor } = facts;
    const policy = adopted(facts);
    const to = wish.to === 'file' ? policy.mode : wish.to;
    if (to === params.mode)
      return { kind: 'nothing', sentence: `${limiter} is in mode ${to} already.` };
    if (to === 'auto') needsLaw(policy, limiter);
    const up = MODES.indexOf(to) > MODES.indexOf(params.mode);
    if (up && wish.to !== 'file' && !wish.anyway) needsEvidence(wish.evidence, limiter, to);
    const { values: before, settled, pinned, frozen } = standing(facts);
    const said: ByPerson = parseByPerson(params.byPerson);
    delete said.mode;
    if (to !== policy.mode) said.mode = { is: to, over: policy.mode, by: actor };
    if (to === 'auto') for (const field of PERSONAL_NUMBERS) delete said[field];
    const byPerson = byPersonText(said);
    // The law goes on from what is in force; without it the policy's own numbers hold.
    const keeps = to === 'auto' || params.mode !== 'auto' || pinned || frozen;
    const numbers = keeps ? {} : restingNumbers(policy, { ...params, byPerson });
    const after = { ...before, ...numbers, mode: to };
    const evidence = up ? `; ${evidenceText(wish.evidence)}` : '';
    const told = moved(before, after);
    return {
      kind: 'change',
      reason: 'promote',
      ...{ before, after },
      agreed: ['mode'],
      basis: `${params.policyHash} ${params.byPerson}`,
      change: { ...settled, mode: to, byPerson, ...numbers },
      sentence: `${actor} moved ${limiter} ${up ? 'up' : 'down'}: mode ${params.mode} → ${to}${told ? `, ${told}` : ''}${evidence}.`,
      detail: {
        promote: { from: params.mode, to },
        ...(up ? { evidence: wish.evidence } : {}),
        ...(wish.anyway ? { anyway: true } : {}),
      },
      notes: notesOf(facts, policy, to, pinned || frozen),
    };
  };
}

function notesOf({ limiter }: Facts, policy: Policy, to: Mode, held: boolean): string[] {
  const notes: string[] = [];
  if (to !== policy.mode) {
    notes.push(
      `The policy file says mode: '${policy.mode}'. This stands until the file changes its mode; to make it the file's, write mode: '${to}'. \`${endCommand('mode', limiter)}\` takes it back.`,
    );
  }
  if (held) notes.push('It is held: nothing moves before that ends.');
  return notes;
}

function adopted({ policy, limiter }: Facts): Policy {
  if (policy !== null) return policy;
  throw refused(
    `the adopted policy of ${limiter} cannot be read. \`flyball apply\` adopts it anew.`,
  );
}

function needsLaw({ control, bounds }: Policy, limiter: string): void {
  const lacks = [
    ...(control.law === 'fixed' ? ['control (adaptive(), step() …)'] : []),
    ...(bounds === undefined ? ['bounds'] : []),
  ];
  if (lacks.length === 0) return;
  throw refused(
    `nothing would move ${limiter} in mode auto: its policy has no ${lacks.join(' and no ')}. Write that into its file, then \`flyball apply\`.`,
  );
}

function needsEvidence(evidence: Evidence, limiter: string, to: Mode): void {
  const lacks = lacking(evidence);
  if (lacks.length === 0) return;
  const seen = evidenceText(evidence);
  throw new WishFault(
    (name) =>
      `${limiter} is not ready for ${to}: ${lacks.join('; ')}. Wait, or go on anyway and say why (${name('anyway')}, ${name('reason')}). Seen so far: ${seen}.`,
    'FLYBALL_E_PROMOTE_EVIDENCE',
  );
}

function refused(message: string): FlyballError {
  return new FlyballError('FLYBALL_E_PROMOTE_REFUSED', message);
}
