/** A state as shape, word and colour together: none of them alone carries it. Stage: dashboard. */
import type { StatusView } from '../../view/status.js';
import type { Level } from '../data/attention.js';

export type Shown = 'closed' | 'open' | 'half-open' | 'recovering' | 'unmanaged' | 'gliding';

/** What a row says first: gliding is a state to a person, though Redis keeps it as time. */
function shownState(view: StatusView): Shown {
  if (view.state === null) return 'unmanaged';
  return view.gliding ? 'gliding' : view.state;
}

/** "closed" of a breaker means that requests pass: what each state does to them, beside its name wherever it stands. */
export const STATE_DOES: Record<Shown, string> = {
  closed: 'passing',
  open: 'denying all',
  'half-open': 'probing',
  recovering: 'rising',
  gliding: 'to safe values',
  unmanaged: 'own numbers',
};

/** `closed · passing` */
export function stateWords(shown: Shown): string {
  return `${shown} · ${STATE_DOES[shown]}`;
}

/** On a square of 16. */
const SHAPES: Record<Shown | Level, string> = {
  closed: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Z',
  open: 'M5 1h6l4 4v6l-4 4H5l-4-4V5ZM4 7v2h8V7Z',
  'half-open':
    'M8 1.500a6.500 6.500 0 1 0 0 13ZM9.500 2v1.700a4.500 4.500 0 0 1 0 8.600V14a6.200 6.200 0 0 0 0-12Z',
  recovering: 'M8 1.500 15 14.500H1Z',
  gliding: 'M1 1.500h14L8 14.500Z',
  unmanaged: 'M8 .5 15.500 8 8 15.500.5 8ZM8 4 4 8l4 4 4-4Z',
  act: 'M5 1h6l4 4v6l-4 4H5l-4-4V5ZM7 4v5h2V4ZM7 10.500v2h2v-2Z',
  look: 'M8 1 15.500 14.500H.5ZM7.200 6v4h1.600V6ZM7.200 11v1.600h1.600V11Z',
  held: 'M5 7V5a3 3 0 0 1 6 0v2h2v7H3V7ZM6.700 7h2.600V5a1.300 1.300 0 0 0-2.600 0Z',
  well: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Z',
};

export function Glyph({ shape }: { shape: Shown | Level }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[shape]} fill="currentColor" fill-rule="evenodd" />
    </svg>
  );
}

export function StateBadge({ view }: { view: StatusView }) {
  const shown = shownState(view);
  const passesAll = view.mode === 'off' || view.mode === 'shadow';
  return (
    <span class={`state ${shown}`}>
      <Glyph shape={shown} />
      {shown}
      <span class="does">· {passesAll ? 'not enforced' : STATE_DOES[shown]}</span>
    </span>
  );
}
