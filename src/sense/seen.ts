/** A number that a source gave → what the daemon takes in, or why it cannot be one. Pure. Stage: sense. */
import type { Unit } from '../policy/signals-schema.js';
import type { Missing } from './readings.js';
import { missing, type Seen, shortened } from './source.js';

export interface SeenMore {
  /** Default 1. */
  count?: number;
  detail?: string;
}

/** Times come out in milliseconds. Every signal is a time, a count or a share: what is below 0 is a mistake. */
export function seenNumber(
  value: number,
  unit: Unit,
  monotonicMs: number,
  more: SeenMore = {},
): Seen | Missing {
  if (!Number.isFinite(value)) return missing('not_finite', `it gives ${value}`);
  if (value < 0) {
    return missing(
      'not_finite',
      `it gives ${value}; a signal is a time, a count or a share, from 0`,
    );
  }
  return {
    kind: 'value',
    value: unit === 'seconds' ? value * 1000 : value,
    monotonicMs,
    count: more.count ?? 1,
    ...(more.detail === undefined ? {} : { detail: shortened(more.detail) }),
  };
}
