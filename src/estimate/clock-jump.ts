/** A clock that was set: moments from before and after it cannot be compared, so what is known by moments begins anew. Stage: estimate. */
import type { Readings } from '../sense/readings.js';

/** Redis time that runs this far off the monotonic time between two ticks has been set; waiting for Redis is less. */
const JUMP_MS = 5_000;

/** Has the clock been set since the last tick, by what the tick itself shows or by what the source found? */
export function clockJumped(lastAtMs: number | null, readings: Readings, dtMs: number): boolean {
  const { atMs, telemetry } = readings;
  if (telemetry.kind === 'missing' && telemetry.reason === 'clock_skew') return true;
  if (lastAtMs === null) return false;
  return !(Math.abs(atMs - lastAtMs - dtMs) <= JUMP_MS);
}
