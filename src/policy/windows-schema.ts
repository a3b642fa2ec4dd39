/** Profiles of numbers, and the windows of time in which one of them, or a freeze, holds. Stage: policy. */
import { z } from 'zod';
import { cap, capacity, name, rate, text, timezone } from './fields.js';
import { number, refuse } from './units.js';
import { parseDays, parseMoment } from './windows.js';

const range = <T extends z.ZodType<number, number>>(item: T) =>
  z.strictObject({ min: item, max: item });

/** Nothing has a default here: what is left out stays the policy's own. */
export const profileSchema = z.strictObject({
  /** Factor of the limiter's rate, capacity and cap, and of all bounds. */
  times: number('a factor', { min: 0.01, max: 1000 }).optional(),
  /** These numbers themselves; each leads over `times`. */
  rate: rate.optional(),
  capacity: capacity.optional(),
  inFlightMax: cap.optional(),
  bounds: z
    .strictObject({
      rate: range(rate).optional(),
      inFlight: range(cap).optional(),
      capacity: range(capacity).optional(),
    })
    .optional(),
});

const moment = z.custom<string>(
  (value) => typeof value === 'string' && parseMoment(value) !== null,
  {
    error: (issue) =>
      refuse(issue.input, "a time of day ('19:50') or a moment ('2026-11-11 19:50')"),
  },
);

export const windowSchema = z.strictObject({
  /** The profile that holds. */
  profile: name.optional(),
  /** In place of a profile: law and tuning change nothing; the text says why. */
  freeze: text(/^[\s\S]{1,200}$/, "a reason of 1 to 200 characters ('stocktaking')").optional(),
  /** Days on which it begins: 'mon-fri', 'sat,sun', '11-11', '2026-11-11'. Default: every day. */
  on: z
    .custom<string>((value) => typeof value === 'string' && parseDays(value) !== null, {
      error: (issue) =>
        refuse(
          issue.input,
          "days ('mon-fri', 'sat,sun', '11-11' for each 11 November, '2026-11-11' for one)",
        ),
    })
    .optional(),
  from: moment,
  /** At or before `from` by the clock: of the next day. */
  to: moment,
  /** Default UTC. */
  timezone: timezone.optional(),
});
