/** Kinds of field that several parts of a policy share: numbers with their units and ranges, names, codes. Stage: policy. */
import { z } from 'zod';
import { parseRoute } from '../redis/route.js';
import { isTimeZone } from './local-time.js';
import { number, refuse, show } from './units.js';

export const rate = number('tokens per second', { min: 1e-6, max: 1e6 });
export const capacity = number('tokens', { min: 1, max: 1e9 });
export const cost = number('tokens', { min: 1e-6, max: 1e9 });
export const cap = number('requests in flight', { min: 1, max: 1e6, whole: true });
export const factor = (range: { above?: number; below?: number }) => number('a factor', range);

export const text = (pattern: RegExp, allowed: string) =>
  z.custom<string>((value) => typeof value === 'string' && pattern.test(value), {
    error: (issue) => refuse(issue.input, allowed),
  });
export const name = text(
  /^[a-z0-9][a-z0-9._-]{0,63}$/,
  "a name (1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit)",
);
/** As the SDK reports it; what is reported in other characters comes in as `_`. */
export const code = text(
  /^[A-Za-z0-9._-]{1,64}$/,
  "a name of 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'",
);

const aRoute = "a route ('POST /api/pay/**', or a path alone)";
export const route = z.custom<string>(
  (value) => typeof value === 'string' && typeof parseRoute(value) !== 'string',
  {
    error: ({ input }) => {
      const fault = typeof input === 'string' ? parseRoute(input) : undefined;
      if (typeof fault !== 'string' || fault.startsWith('it is no route')) {
        return refuse(input, aRoute);
      }
      return `is ${show(input)}: ${fault}.`;
    },
  },
);
/** As the template makes it, or the caller names it. */
export const subjectName = text(
  /^[\s\S]{1,256}$/,
  "a subject of 1 to 256 characters ('user:42'), as the template or the caller names it",
);
export const timezone = z.custom<string>((zone) => typeof zone === 'string' && isTimeZone(zone), {
  error: (issue) =>
    refuse(issue.input, "a time zone that this machine knows ('UTC', 'Europe/Berlin')"),
});
