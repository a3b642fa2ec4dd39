/** Takes at most so many of a stream into typed arrays, each with the same chance, at next to no cost for the rest. Stage: enforce. */

/** Takes read between two drains: all of them up to this rate, past it an even sample. */
export const MOST_READ = 1024;

export interface Reservoir {
  /** `weight` is the cost of an admitted take, -1 for a denied one. */
  offer(subject: string, weight: number): void;
  /** Visits what was kept; each stands for `takes` of them, `seen ÷ read`. Empties it. */
  drain(visit: (subject: string, weight: number, takes: number) => void): {
    seen: number;
    read: number;
  };
}

/** Keeps an even sample by skips (Li's algorithm L): past the first `MOST_READ`, most offers only count. */
export function createReservoir(random: () => number = Math.random): Reservoir {
  // Made by the first offer: many limiters have no subjects.
  let subjects: string[] = [];
  let weights = new Float64Array(0);
  let seen = 0;
  /** Position of the next offer that is kept, once it is full. */
  let next = MOST_READ;
  let share = 1;

  /** 0 would be a logarithm of nothing. */
  const draw = () => 1 - random();

  function skip(from: number): void {
    share *= Math.exp(Math.log(draw()) / MOST_READ);
    next = from + Math.floor(Math.log(draw()) / Math.log1p(-share)) + 1;
  }

  return {
    offer(subject, weight) {
      const at = seen++;
      if (subjects.length === 0) {
        subjects = new Array<string>(MOST_READ).fill('');
        weights = new Float64Array(MOST_READ);
      }
      if (at >= MOST_READ && at < next) return;
      const place = at < MOST_READ ? at : Math.floor(random() * MOST_READ);
      subjects[place] = subject;
      weights[place] = weight;
      if (at >= MOST_READ - 1) skip(at);
    },
    drain(visit) {
      const counts = { seen, read: Math.min(seen, MOST_READ) };
      const takes = counts.seen / counts.read;
      for (let i = 0; i < counts.read; i++) {
        visit(subjects[i]!, weights[i]!, takes);
        // A subject is not held longer than it is needed.
        subjects[i] = '';
      }
      seen = 0;
      next = MOST_READ;
      share = 1;
      return counts;
    },
  };
}
