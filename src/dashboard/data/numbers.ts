/** Numbers of rows and axes: short, and of one precision beside each other. Pure. Stage: dashboard. */
import { number } from '../../view/text.js';

/** `168`, `67.6`, `7.25`: whole from a hundred on. */
export function short(value: number): string {
  const most = Math.abs(value);
  const digits = most >= 100 ? 0 : most >= 10 ? 1 : 2;
  return number(Number(value.toFixed(digits)));
}
