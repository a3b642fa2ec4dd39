/** The signals of a limiter as a person reads them. Stage: cli. */

import { withUnit } from '../view/signal-unit.js';
import type { SignalView } from '../view/signals.js';
import type { SeenSignals } from '../view/signals-read.js';
import type { CliIo } from './output.js';
import { clean, number, span } from './text.js';

type Told = Pick<SeenSignals, 'limiter' | 'from' | 'owner' | 'ageMs' | 'held'> & {
  signals: readonly SignalView[];
};

export function signalsText(io: CliIo, told: Told): string {
  const { c } = io;
  const by =
    told.from === 'daemon'
      ? `as ${clean(told.owner ?? 'its daemon')} saw them ${span(told.ageMs)} ago`
      : 'read here and now: no daemon leads it with this policy';
  const lines = [`${c.bold(clean(told.limiter))}  ${c.dim(by)}`];
  if (told.held !== null) lines.push(c.red(clean(told.held)));
  if (told.signals.length === 0) return [...lines, 'Its policy has no signals.'].join('\n');
  const rows = told.signals.map((view) => [
    view.signal,
    readingOf(view),
    levelOf(view),
    isIdle(view) || (view.value === null && view.ageMs === 0) ? '' : span(view.ageMs),
    view.count === 0 ? '' : number(view.count),
    coloured(io, view),
    view.follows,
    clean([reasonOf(view), view.detail].filter((part) => part).join(': ')),
  ]);
  return [...lines, io.table(HEAD, rows)].join('\n');
}

const HEAD = ['SIGNAL', 'READING', 'LEVEL', 'AGE', 'COUNT', 'VERDICT', 'SO THE LAW', 'WHY'];

/** Nobody was answered of late. The news of that is new, the number is of the last who were. */
function isIdle({ reason }: SignalView): boolean {
  return reason === 'no_traffic';
}

function readingOf(view: SignalView): string {
  if (view.value === null) return '–';
  return withUnit(view.value, view.unit) + (isIdle(view) ? ' (old)' : '');
}

function coloured({ c }: CliIo, { verdict }: SignalView): string {
  if (verdict === 'fresh') return c.green(verdict);
  return verdict === 'missing' || verdict === 'stale' ? c.red(verdict) : c.yellow(verdict);
}

function reasonOf({ reason, verdict }: SignalView): string {
  if (verdict === 'waiting') return 'nothing new since the last tick';
  return reason === null || reason === verdict ? '' : reason;
}

/** `below 250 ms, trips above 400 ms`; empty: the policy decides nothing by it. */
export function levelOf(view: SignalView): string {
  const parts: string[] = [];
  if (view.setpoint !== null) parts.push(`${view.side} ${withUnit(view.setpoint, view.unit)}`);
  if (view.tripsAbove !== null) parts.push(`trips above ${withUnit(view.tripsAbove, view.unit)}`);
  return parts.join(', ');
}
