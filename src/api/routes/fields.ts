/** Fields of queries that several routes take. Stage: api. */
import { z } from 'zod';
import { isoMs } from '../../moment.js';

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
    return /^\d{1,15}$/.test(text) ? Number(text) : isoMs(text);
  })
  .refine((n) => Number.isFinite(n), 'is neither ms since 1970 nor an ISO time');
