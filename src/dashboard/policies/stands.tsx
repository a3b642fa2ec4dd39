/** Where a policy stands to its file, in a shape and words. Stage: dashboard. */
import type { PoliciesAnswer } from '../../api/types.js';
import type { Level } from '../data/attention.js';
import { Glyph } from '../parts/glyph.jsx';

export type Plan = PoliciesAnswer['limiters'][number];

const ACTIONS: Record<Plan['action'], { level: Level; words: string }> = {
  unchanged: { level: 'well', words: 'as its file says' },
  create: { level: 'look', words: 'new: waits to be adopted' },
  change: { level: 'look', words: 'a changed file waits to be adopted' },
  mend: { level: 'look', words: 'has drifted from its policy' },
  refuse: { level: 'act', words: 'cannot be adopted' },
  orphan: { level: 'held', words: 'no file here: its adopted policy stays' },
};

export function Stands({ plan }: { plan: Plan }) {
  const { level, words } = ACTIONS[plan.action];
  return (
    <span class={`state ${level}`}>
      <Glyph shape={level} />
      {words}
    </span>
  );
}
