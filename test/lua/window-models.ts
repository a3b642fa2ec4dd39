/**
 * The window algorithms written a second time, for tests: every admitted take is kept in a plain list and counted
 * anew at each question. Times in µs, amounts in whole millionths. Shares no code with the product.
 */

export interface Took {
  atUs: number;
  micros: number;
}

export interface WindowModel {
  readonly limit: number;
  /** What counts against the limit at that moment. */
  used(nowUs: number): number;
  /** The first moment at which `micros` more would fit, if nothing else is taken; null: never. */
  fitsAtUs(micros: number, nowUs: number): number | null;
  take(micros: number, nowUs: number): boolean;
  /** Gives back what was taken then; false: it does not count any more. */
  refund(micros: number, atUs: number, nowUs: number): boolean;
}

/** `countsUntil` says when a take of that time stops counting: all there is between the algorithms. */
function model(limit: number, countsUntil: (atUs: number) => number): WindowModel {
  const took: Took[] = [];
  const used = (nowUs: number) =>
    took.reduce((sum, each) => (countsUntil(each.atUs) > nowUs ? sum + each.micros : sum), 0);
  return {
    limit,
    used,
    fitsAtUs(micros, nowUs) {
      const ends = [nowUs, ...took.map((each) => countsUntil(each.atUs))].filter(
        (us) => us >= nowUs,
      );
      const fits = ends.filter((us) => used(us) + micros <= limit);
      return fits.length === 0 ? null : Math.min(...fits);
    },
    take(micros, nowUs) {
      if (used(nowUs) + micros > limit) return false;
      took.push({ atUs: nowUs, micros });
      return true;
    },
    refund(micros, atUs, nowUs) {
      const index = took.findIndex((each) => each.atUs === atUs && each.micros === micros);
      if (index < 0 || countsUntil(atUs) <= nowUs) return false;
      took.splice(index, 1);
      return true;
    },
  };
}

/** A take counts for exactly one window. */
export const logModel = (limit: number, windowUs: number) => model(limit, (at) => at + windowUs);

/** A take counts until a whole window lies between now and the end of its cell. */
export function counterModel(limit: number, windowUs: number, cells: number): WindowModel {
  const width = Math.ceil(windowUs / cells);
  return model(limit, (at) => (Math.floor(at / width) + 1 + cells) * width);
}

/** A take counts until the next multiple of the window. */
export const fixedModel = (limit: number, windowUs: number) =>
  model(limit, (at) => (Math.floor(at / windowUs) + 1) * windowUs);

/** Pacing: a queue that leaks at a rate; a take proceeds once all before it has leaked. */
export class PaceModel {
  level = 0;
  atUs: number;
  constructor(
    readonly rate: number,
    readonly capacity: number,
    nowUs: number,
  ) {
    this.atUs = nowUs;
  }

  /** ms to wait, or null: no room. */
  take(cost: number, nowUs: number): number | null {
    this.level = Math.max(0, this.level - (this.rate * (nowUs - this.atUs)) / 1e6);
    this.atUs = nowUs;
    if (this.level + cost > this.capacity + 1e-6) return null;
    const delayMs = (this.level / this.rate) * 1000;
    this.level += cost;
    return delayMs;
  }
}
