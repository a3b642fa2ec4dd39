/** What an entry moved, field by field, before → after, each with its unit. Pure. Stage: cli, api. */
import type { EntryValues } from '../actuate/entry.js';

export type DiffUnit = 'per_second' | 'tokens' | 'requests' | 'share' | '';

export interface FieldDiff {
  field:
    | 'mode'
    | 'state'
    | 'rate'
    | 'capacity'
    | 'inFlightMax'
    | 'reserveDefault'
    | 'reserveSheddable';
  unit: DiffUnit;
  /** null: there was nothing before. A cap of 0 is none. */
  before: string | number | null;
  after: string | number;
}

const FIELDS: readonly [FieldDiff['field'], DiffUnit, (of: EntryValues) => string | number][] = [
  ['mode', '', (of) => of.mode],
  ['state', '', (of) => of.state],
  ['rate', 'per_second', (of) => of.rate],
  ['capacity', 'tokens', (of) => of.capacity],
  ['inFlightMax', 'requests', (of) => of.inFlightMax],
  ['reserveDefault', 'share', (of) => of.reserve?.default ?? 0],
  ['reserveSheddable', 'share', (of) => of.reserve?.sheddable ?? 0],
];

/** Only what moved; all that stands where there is no before. */
export function diffOf(before: EntryValues | null, after: EntryValues | null): FieldDiff[] {
  if (after === null) return [];
  return FIELDS.flatMap(([field, unit, read]) => {
    const was = before === null ? null : read(before);
    const is = read(after);
    const begins = before === null && unit === 'share' && is === 0;
    return was === is || begins ? [] : [{ field, unit, before: was, after: is }];
  });
}
