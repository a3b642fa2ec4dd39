/** The unit of a signal, and a number of it as a person reads it: `62.1 ms`, `9.09 %`, `12/s`. Pure. Stage: cli, api. */
import { type SignalKind, signalKind } from '../policy/kinds.js';
import type { Signal } from '../policy/schema.js';
import { number } from './text.js';

export type SignalUnit = 'ms' | 'ratio' | 'per_second' | '';

const UNITS: Record<SignalKind, SignalUnit> = {
  duration: 'ms',
  ratio: 'ratio',
  count: '',
  perSecond: 'per_second',
};

export function unitOf(signal: Signal): SignalUnit {
  return UNITS[signalKind(signal)];
}

export function withUnit(value: number, unit: SignalUnit): string {
  if (unit === 'ms') return `${number(value)} ms`;
  if (unit === 'ratio') return `${number(value * 100)} %`;
  return unit === 'per_second' ? `${number(value)}/s` : number(value);
}
