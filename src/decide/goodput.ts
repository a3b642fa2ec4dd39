/** The overload that a shortage of good answers speaks of: only what came, and came too late, is the load's doing. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { Sample } from './types.js';

/** Share of the answers that may miss the time before a shortage of good ones is called congestion. */
const TOLERATED = 0.05;
const FLOOR = 0.05;

/**
 *   z = min( ln(setpoint ÷ goodput), ln(lost ÷ 5 %) )       lost = 1 − goodput ÷ answers
 *
 * Few good answers may also mean few requests, or limits that are too low: then nothing of what was answered is lost,
 * z is far below 0, and the law may raise. With `within` only good answers are asked whether they came in time,
 * since errors are not congestion; without it failures are all there is to lose. Null: nothing was answered, which
 * proves nothing.
 */
export function goodputOverload(
  signal: Policy['signals'][string],
  goodput: number,
  setpoint: number,
  sample: Sample,
): number | null {
  const { traffic } = sample;
  if (signal.stat !== 'goodput' || !traffic.fresh) return null;
  const answers = signal.within === undefined ? traffic.answerRate : traffic.okRate;
  if (!(answers > 0)) return null;
  const lost = Math.min(1, Math.max(0, 1 - goodput / answers));
  return Math.min(
    Math.log(setpoint / Math.max(goodput, FLOOR * setpoint)),
    Math.log(Math.max(lost / TOLERATED, FLOOR)),
  );
}
