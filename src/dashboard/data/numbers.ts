/** Numbers of rows and axes: short, and of one precision beside each other. Pure. Stage: dashboard. */
import { number } from '../../view/text.js';

/** `7.25`, `67.6`, `168`, `9870`, `12.3k`, `1.2M`: of steady width, so that a column clips none. */
export function short(value: number): string {
  const most = Math.abs(value);
  if (most >= 999_500) return `${threeDigits(value / 1e6)}M`;
  return most >= 10_000 ? `${threeDigits(value / 1000)}k` : threeDigits(value);
}

/** Whole from a hundred on. */
function threeDigits(value: number): string {
  const most = Math.abs(value);
  const digits = most >= 100 ? 0 : most >= 10 ? 1 : 2;
  return number(Number(value.toFixed(digits)));
}
