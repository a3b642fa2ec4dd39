/** Self-tuning from history: when, from how far back, and what a history cannot show of the service. Stage: policy. */
import { z } from 'zod';
import { NEVER, parseSchedule } from '../tune/schedule.js';
import { timezone } from './fields.js';
import { number, refuse, time } from './units.js';

const DAY_MS = 86_400_000;

const isSchedule = (text: string) => text === NEVER || parseSchedule(text) !== null;

/** Nothing has a default here: what is left out is filled in by who reads it, and the hash stays as it was. */
export const tuneSchema = z.strictObject({
  /** 'weekly' (Monday 04:00; the default), 'daily' (04:00), five fields of cron, or 'never': only `flyball tune` tunes. */
  schedule: z
    .custom<string>((text) => typeof text === 'string' && isSchedule(text), {
      error: (issue) =>
        refuse(
          issue.input,
          "'weekly', 'daily', 'never' or five fields of cron ('0 4 * * 1': minute, hour, day of month, month, weekday)",
        ),
    })
    .optional(),
  /** Zone of the schedule. Default UTC. */
  timezone: timezone.optional(),
  /** How far back it looks. Default 7 days; 8 are kept. */
  since: time({ min: DAY_MS, max: 8 * DAY_MS }).optional(),
  /** Requests that one instance serves at a time. Default: estimated from the knee. */
  slotsPerInstance: number('slots', { min: 1, max: 100_000, whole: true }).optional(),
  /** Default: the processes that report completions. */
  instances: number('instances', { min: 1, max: 100_000, whole: true }).optional(),
  /** Database connections of all instances together. Default: they do not bind. */
  connections: number('connections', { min: 1, max: 1_000_000, whole: true }).optional(),
  /** How long a request holds a connection, on average. Default: its response time. */
  hold: time({ min: 0.01, max: 3_600_000 }).optional(),
});
