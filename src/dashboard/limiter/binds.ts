/** What turns requests away now, and why it stands where it stands, in sentences. Pure. Stage: dashboard. */
import type { LastDecision } from '../../api/types.js';
import type { StatusView } from '../../view/status.js';
import type { LoopView } from '../../view/status-loop.js';
import { number } from '../../view/text.js';

/** Answers "what binds?" with the numbers. */
export function bindsSentence(view: StatusView): string {
  const { inForce, traffic, mode } = view;
  const rate = inForce ? `${number(inForce.rate)}/s` : '';
  if (!view.managed) return 'Nothing of Flyball: services use the numbers in their own code.';
  if (mode === 'off') return 'Nothing: in mode off everything is admitted.';
  const would = mode === 'shadow' ? ' In shadow nothing is denied: this is what would bind.' : '';
  return `${bindsOf(view, rate)}${would}${traffic.seen ? '' : ' No service has reported in the last 5 s.'}`;
}

function bindsOf({ binds, state, inForce }: StatusView, rate: string): string {
  switch (binds) {
    case 'breaker':
      return state === 'half-open'
        ? `The breaker: half-open, so only probes pass (${rate}).`
        : 'The breaker: open, so everything is denied.';
    case 'rate':
      return `The rate: more than ${rate} is asked for.`;
    case 'cap':
      return `The in-flight cap: ${number(inForce?.inFlightMax ?? 0)} are under way already.`;
    case 'subject':
      return 'The limits of single subjects, not the total.';
    case 'reserve':
      return 'The reserve: low priorities wait so that higher ones pass.';
    case 'nothing':
      return `Nothing: less than ${rate} is asked for.`;
    default:
      return 'It is not known what binds.';
  }
}

/** What the law knows of how the service answers it; the numbers behind it are for who tunes. */
export function loopSentence({ deadMs, trust }: Pick<LoopView, 'deadMs' | 'trust'>): string {
  if (trust === 0 || deadMs === null) {
    return 'Not yet how soon, and how far, a change of the limits shows: the law goes by its defaults.';
  }
  const after = number(Number((deadMs / 1000).toPrecision(2)));
  const part = trust < 1 ? ', as far as it is sure of that' : '';
  return `A change of the limits shows after ${after} s, and the law takes its steps by it${part}.`;
}

/** Without guards that let it pass. */
export function verdictSentences(decision: LastDecision | null): string[] {
  return (decision?.verdicts ?? []).flatMap(({ effect, sentence }) =>
    effect !== 'passed' && sentence !== undefined && !decision?.sentence.includes(sentence)
      ? [sentence]
      : [],
  );
}

/** `rate 300/min, in_flight 4/s` of what was denied. */
export function denials(perSecond: Record<string, number>): string {
  const parts = Object.entries(perSecond)
    .filter(([, n]) => n > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, n]) => `${number(Math.round(n * 10) / 10)}/s by ${reason.replaceAll('_', ' ')}`);
  return parts.join(', ');
}
