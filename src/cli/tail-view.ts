/** Decision samples as lines for people or programs, and what was missed. Stage: cli. */
import type { DecisionSample } from '../redis/tail-fields.js';
import type { CliIo } from './output.js';
import { clean, clockTime, number, safeJsonLine, span } from './text.js';

export interface TailView {
  show(samples: readonly DecisionSample[]): void;
  end(interrupted: boolean): void;
}

/** Numbers that one process gave its samples: what lies between and was not seen was dropped. */
interface Numbers {
  first: number;
  last: number;
  seen: number;
}

/** Shows those below `ratio`: services sample for all askers at once, by the highest ratio. */
export function createTailView(io: CliIo, ratio: number): TailView {
  const processes = new Map<string, Numbers>();
  let shown = 0;

  function count({ process, n }: DecisionSample): void {
    const known = processes.get(process) ?? { first: n, last: n, seen: 0 };
    known.first = Math.min(known.first, n);
    known.last = Math.max(known.last, n);
    known.seen += 1;
    processes.set(process, known);
  }

  function dropped(): number {
    let sum = 0;
    for (const { first, last, seen } of processes.values())
      sum += Math.max(0, last - first + 1 - seen);
    return sum;
  }

  return {
    show(samples) {
      for (const sample of samples) count(sample);
      const own = samples.filter(({ u }) => u < ratio).sort((a, b) => a.atMs - b.atMs);
      shown += own.length;
      for (const sample of own) io.out(io.flags.json ? jsonOf(sample) : lineOf(io, sample));
    },
    end(interrupted) {
      const missed = dropped();
      if (io.flags.json) {
        const ended = interrupted ? 'interrupted' : 'time';
        io.out(
          safeJsonLine({ schema: 1, ended, shown, dropped: missed, processes: processes.size }),
        );
        return;
      }
      const more =
        missed > 0 ? ` ${missed} more were dropped: a process sends at most 50 a second.` : '';
      const none =
        ratio < 1
          ? `No decision was sampled. At so little traffic try --ratio 1.`
          : 'No decision was taken, or no service of this version takes them.';
      const of = `${processes.size} ${processes.size === 1 ? 'process' : 'processes'}`;
      io.say(io.ce.dim(shown === 0 ? none : `${shown} shown, of ${of}.${more}`));
    },
  };
}

function jsonOf({ u, n, ...sample }: DecisionSample): string {
  return safeJsonLine({ schema: 1, ...sample });
}

/** `13:02:11 deny   user:42  cost 1 default  subject, again in 320 ms  0 left  revision 41  redis  k3-9f…` */
function lineOf(io: CliIo, sample: DecisionSample): string {
  const { c } = io;
  const ms = String(sample.atMs % 1000).padStart(3, '0');
  const answer = sample.allowed ? c.green('admit') : c.red('deny ');
  const why = sample.wouldAllow
    ? ''
    : sample.allowed
      ? `would deny: ${sample.reason}`
      : again(sample);
  return [
    `${clockTime(sample.atMs)}.${ms}`,
    answer,
    sample.subject === null ? c.dim('no subject') : clean(sample.subject),
    `cost ${number(sample.cost)} ${clean(sample.priority)}`,
    ...(why === '' ? [] : [clean(why)]),
    ...(sample.delayMs > 0 ? [`after ${span(sample.delayMs)}`] : []),
    `${sample.remaining} left`,
    `revision ${sample.revision}`,
    clean(sample.source),
    c.dim(clean(sample.process)),
  ].join('  ');
}

function again({ reason, retryAfterMs }: DecisionSample): string {
  return retryAfterMs === null ? reason : `${reason}, again in ${span(retryAfterMs)}`;
}
