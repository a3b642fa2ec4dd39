/** What of a limiter needs a person, in words, and how much; the overview's first order. Pure. Stage: dashboard. */
import { withUnit } from '../../view/signal-unit.js';
import type { StatusView } from '../../view/status.js';
import { number, span } from '../../view/text.js';

/** `act`: something is wrong now; `look`: soon, or unseen; `held`: a person's word stands; `well`: nothing. */
export type Level = 'act' | 'look' | 'held' | 'well';

export interface Attention {
  level: Level;
  /** Short, for a row and the page's title. */
  words: string;
}

export const LEVELS: readonly Level[] = ['act', 'look', 'held', 'well'];

/** Above its setpoint by so much it is no longer the law's usual play around it. */
const MISSED = 1.2;

/** All that stands out, the worst first; never empty. */
export function attentions(view: StatusView, nowMs: number): Attention[] {
  const found: Attention[] = [];
  const add = (level: Level, words: string) => found.push({ level, words });
  if (!view.managed) add('act', 'services use the numbers in code');
  if (view.state === 'open') add('act', openWords(view, nowMs));
  if (view.managed && !view.daemon.alive && view.mode !== 'off') {
    add('act', view.gliding ? 'no daemon: gliding to safe values' : 'no daemon watches it');
  }
  if (view.faults.length > 0) add('act', 'its policy file does not load');
  if (view.state === 'half-open') add('look', 'half-open: its probes decide');
  if (view.state === 'recovering') add('look', 'recovering: rises step by step');
  if (view.worst !== null && !isOld(view) && view.worst.ratio >= MISSED) {
    const { signal, ratio, value, unit } = view.worst;
    add('look', `${signal} ${withUnit(value, unit)}, ${number(round2(ratio))} × its setpoint`);
  }
  for (const { signal, reason } of view.missing) {
    if (!isQuiet(reason)) add('look', `no evidence of ${signal}: ${reason.replaceAll('_', ' ')}`);
  }
  if (view.file === 'drift') add('look', 'policy file differs from the adopted one');
  // While a part tries it already, nobody need be told.
  if (view.file === 'pending' && view.canary === null) {
    add('look', 'a changed policy waits to be applied');
  }
  for (const hold of view.holds) {
    const till = hold.untilMs === null ? 'until ended' : `for ${span(hold.untilMs - nowMs)}`;
    add('held', `${HELD[hold.kind]} ${till}`);
  }
  if (view.rollout !== null && view.rollout.percent < 100) {
    add('held', `enforced for ${number(view.rollout.percent)} %`);
  }
  if (found.length === 0) return [{ level: 'well', words: '' }];
  return found.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}

export function worstAttention(view: StatusView, nowMs: number): Attention {
  return attentions(view, nowMs)[0]!;
}

const HELD = {
  pinned: 'pinned',
  frozen: 'frozen',
  open: 'held open',
  bounds: "a person's bounds",
} as const;

/** Nothing happens, or not yet: no fault of the signal. */
export function isQuiet(reason: string): boolean {
  return reason === 'no_traffic' || reason === 'thin' || reason === 'not_started';
}

/** The worst reading is from before its signal was lost. Between two of its reports it is no less true. */
export function isOld({ worst, missing }: StatusView): boolean {
  return worst !== null && missing.some(({ signal }) => signal === worst.signal);
}

function openWords(view: StatusView, nowMs: number): string {
  const until = view.openUntilMs;
  if (until === null || until <= 0) return 'breaker held open';
  return until > nowMs ? `breaker open, probes in ${span(until - nowMs)}` : 'breaker open';
}

function round2(value: number): number {
  return Math.round(value * 100) / 100;
}

/** What the tab says: what is wrong before what is shown. */
export function pageTitle(page: string, wrong: readonly { name: string; words: string }[]): string {
  if (wrong.length === 0) return `${page} · Flyball`;
  const [first] = wrong;
  const said =
    wrong.length === 1 ? `${first!.name}: ${first!.words}` : `${wrong.length} limiters need you`;
  return `${said} · ${page} · Flyball`;
}
