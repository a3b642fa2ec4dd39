/** Fields of queries that several routes take. Stage: api. */
import { z } from 'zod';

export const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'is no whole number')
    .transform(Number)
    .refine((n) => n >= least && n <= most, `is outside ${least} … ${most}`);

/** ms since 1970, or an ISO time. */
export const moment = z
  .string()
  .transform((text) => {
    if (/^\d{1,15}$/.test(text)) return Number(text);
    // What else Date.parse takes for a time (`-1` is 2001) is a typing error.
    return /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  })
  .refine((n) => Number.isFinite(n), 'is neither ms since 1970 nor an ISO time');
