/** Where a bound of the policy holds what the law or the history wants: *would be 520; bounds.rate.max holds 400*. Pure. Stage: cli, api. */
import type { HeldBack } from '../audit/standing.js';
import type { Windows } from '../redis/windows.js';
import type { CeilingView, ReportView, SuggestedView } from './report-types.js';

/** The farthest of each bound; what the law says leads. */
export function ceilingsOf(
  bounds: ReportView['bounds'],
  held: readonly HeldBack[],
  suggested: SuggestedView | null,
  timed?: Windows['bounds'],
): CeilingView[] {
  const found = new Map<CeilingView['bound'], CeilingView>();
  const add = (
    by: CeilingView['by'],
    name: 'rate' | 'inFlight',
    wouldBe: number | null | undefined,
  ) => {
    const range = bounds[name];
    if (range === null || wouldBe === null || wouldBe === undefined) return;
    const side = wouldBe > range.max ? 'max' : wouldBe < range.min ? 'min' : null;
    if (side === null) return;
    const bound = `bounds.${name}.${side}` as const;
    const holds = range[side];
    const known = found.get(bound);
    const farther = Math.abs(wouldBe - holds) > Math.abs((known?.wouldBe ?? holds) - holds);
    if (known === undefined || (known.by === by && farther)) {
      const setBy = timed?.[name]?.[side] === holds ? timed.by : null;
      found.set(bound, { bound, wouldBe, holds, by, setBy });
    }
  };
  for (const { guard, rate, inFlightMax } of held) {
    if (guard !== 'bounds') continue;
    add('law', 'rate', rate);
    add('law', 'inFlight', inFlightMax);
  }
  if (suggested?.status === 'ready') {
    add('history', 'rate', suggested.rate.wanted);
    add('history', 'inFlight', suggested.inFlightMax?.wanted);
  }
  return [...found.values()];
}
