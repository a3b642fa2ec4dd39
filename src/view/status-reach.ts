/** For whom a limiter is enforced and on which routes, as `status` says it. Pure. Stage: cli, api. */
import type { Params } from '../redis/params.js';
import { isPartial, parseRollout } from '../redis/rollout.js';
import { parseServiceTerms } from '../redis/service-terms.js';
import { clean } from './text.js';

/** Names on one line. */
const SUBJECTS_SHOWN = 5;

export interface RolloutView {
  percent: number;
  /** Enforced by name. */
  subjects: string[];
  by: 'subject' | 'request';
  /** `person`: by `flyball rollout`; it stands until the policy file changes that field. */
  setBy: 'person' | 'policy';
}

/** null: enforced for all, as the policy says. By a person's word it is told: it stands against the policy's own. */
export function rolloutView(params: Params): RolloutView | null {
  const stands = parseRollout(params.rollout);
  if (stands === null) return null;
  const { percent, subjects = [], by = 'subject', over } = stands;
  if (over === undefined && !isPartial(stands)) return null;
  return { percent, subjects, by, setBy: over === undefined ? 'policy' : 'person' };
}

export function routesOf(params: Params | null): string[] {
  const { routes } = parseServiceTerms(params?.terms);
  return Array.isArray(routes) ? routes.map(String) : [];
}

export function rolloutLine({ percent, subjects, by, setBy }: RolloutView): string {
  const whose = setBy === 'person' ? ' (by a person, until the policy file changes it)' : '';
  if (percent >= 100) return `all${whose}`;
  const names = subjects.slice(0, SUBJECTS_SHOWN).map(clean).join(', ');
  const more = subjects.length > SUBJECTS_SHOWN ? `, … (${subjects.length})` : '';
  const named = subjects.length > 0 ? ` and ${names}${more}` : '';
  const what = by === 'request' ? 'requests' : 'subjects';
  return `${percent} % of the ${what}${named}; the others are in shadow${whose}`;
}
