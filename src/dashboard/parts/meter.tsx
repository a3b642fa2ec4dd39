/** A number and where it stands between its bounds, as a small bar. Stage: dashboard. */
import { number } from '../../view/text.js';
import { short } from '../data/numbers.js';

export interface MeterProps {
  value: number;
  unit: string;
  bounds: readonly [number, number] | null;
  kind: 'rate' | 'cap';
  /** Where there is room: the number as it is, not shortened. */
  whole?: boolean;
}

/** 0 … 1; null: the bounds leave no room, so a bar would say nothing. */
export function share(value: number, bounds: readonly [number, number] | null): number | null {
  if (bounds === null || bounds[1] <= bounds[0] || !Number.isFinite(value)) return null;
  return Math.min(1, Math.max(0, (value - bounds[0]) / (bounds[1] - bounds[0])));
}

export function Meter({ value, unit, bounds, kind, whole = false }: MeterProps) {
  const at = share(value, bounds);
  const between = bounds === null ? '' : ` between ${number(bounds[0])} and ${number(bounds[1])}`;
  return (
    <span title={`${number(value)}${unit}${between}`}>
      {whole ? number(value) : short(value)}
      {unit}
      {at !== null && <span class="unseen">{between}</span>}
      <span class={`meter ${kind} ${at === null ? 'none' : ''}`} aria-hidden="true">
        {at !== null && <i class="eased" style={{ width: `${(at * 100).toFixed(1)}%` }} />}
      </span>
    </span>
  );
}
