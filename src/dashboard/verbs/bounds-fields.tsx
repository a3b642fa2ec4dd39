/** What timed bounds ask for: the ends of rate and cap, or to end those that hold. Stage: dashboard. */
import { number } from '../../view/text.js';
import { current } from '../data/store.js';
import type { BoundsEnd, Draft } from './specs.js';

export interface BoundsFieldsProps {
  limiter: string;
  draft: Draft;
  onChange: (part: Partial<Draft>) => void;
}

const LABELS: Record<BoundsEnd, string> = {
  rateMin: 'Least rate, per second',
  rateMax: 'Most',
  inFlightMin: 'Least in-flight cap',
  inFlightMax: 'Most',
};

export function BoundsFields({ limiter, draft, onChange }: BoundsFieldsProps) {
  const view = current().rows.get(limiter);
  const { rate, inFlight } = view?.bounds ?? { rate: null, inFlight: null };
  const field = (name: BoundsEnd, now: number | undefined) => (
    <div class="field" key={name}>
      <label for={`verb-${name}`}>{LABELS[name]}</label>
      <input
        id={`verb-${name}`}
        inputMode="decimal"
        autocomplete="off"
        disabled={draft.clear}
        placeholder={now === undefined ? '' : `now ${number(now)}`}
        value={draft.ends[name]}
        onInput={(event) =>
          onChange({ ends: { ...draft.ends, [name]: event.currentTarget.value } })
        }
      />
    </div>
  );
  return (
    <>
      {view?.holds.some(({ kind }) => kind === 'bounds') && (
        <label class="check whole">
          <input
            type="checkbox"
            checked={draft.clear}
            onChange={(event) => onChange({ clear: event.currentTarget.checked })}
          />
          end the bounds that hold now
        </label>
      )}
      {field('rateMin', rate?.[0])}
      {field('rateMax', rate?.[1])}
      {inFlight && field('inFlightMin', inFlight[0])}
      {inFlight && field('inFlightMax', inFlight[1])}
    </>
  );
}
