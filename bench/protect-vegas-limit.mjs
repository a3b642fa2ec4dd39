/**
 * Vegas over windows, for the bench `protect`: an in-flight limit of one process, moved by how far the mean response
 * time of a window lies above the least one seen. The queue it infers is limit × (1 − least ÷ mean): below 3 × lg limit
 * it grows, above 6 × lg limit it shrinks, each time by lg limit; a lost request shrinks it too.
 */
const START = 20;
const MOST = 1000;
const WINDOW_MS = 1000;
const FEWEST = 10;
/** The least response time is forgotten after so many windows for each one of the limit: the service may have changed. */
const PROBE_WINDOWS = 30;

export function createVegas({ start = START } = {}) {
  let limit = start;
  let leastMs = Number.POSITIVE_INFINITY;
  let sinceProbe = 0;
  let window = blank(0);

  function blank(atMs) {
    return { fromMs: atMs, sumMs: 0, count: 0, lost: 0, mostInFlight: 0 };
  }

  function move({ sumMs, count, lost, mostInFlight }) {
    const meanMs = sumMs / count;
    sinceProbe += 1;
    if (sinceProbe >= PROBE_WINDOWS * limit) {
      sinceProbe = 0;
      leastMs = meanMs;
      return;
    }
    if (meanMs < leastMs) {
      leastMs = meanMs;
      return;
    }
    const unit = Math.max(1, Math.log10(limit));
    const queue = Math.ceil(limit * (1 - leastMs / meanMs));
    if (lost > 0) limit -= unit;
    // It does not bind: response times say nothing of it.
    else if (mostInFlight * 2 < limit) return;
    else if (queue <= unit) limit += 6 * unit;
    else if (queue < 3 * unit) limit += unit;
    else if (queue > 6 * unit) limit -= unit;
    limit = Math.min(MOST, Math.max(1, limit));
  }

  return {
    get limit() {
      return Math.floor(limit);
    },
    /** One admitted request has ended, well or by its caller's giving up; true when the limit may have moved. */
    ended({ atMs, ms, lost, inFlight }) {
      window.sumMs += ms;
      window.count += 1;
      window.lost += lost ? 1 : 0;
      window.mostInFlight = Math.max(window.mostInFlight, inFlight);
      if (atMs - window.fromMs < WINDOW_MS || window.count < FEWEST) return false;
      move(window);
      window = blank(atMs);
      return true;
    },
  };
}
