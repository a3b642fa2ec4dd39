/** A limiter as `flyball status --json` tells it, as zod. Stage: api. */
import { z } from 'zod';
import type { StatusView } from '../../view/status.js';
import { counts, known, limiterName, mode, ms, number, state, text, unit } from './common.js';

const range = z.tuple([number, number]);

export const numbers = z.object({
  rate: number.describe('tokens per second'),
  capacity: number,
  inFlightMax: known(number).describe('null: no cap'),
});

export const bounds = z.object({ rate: range, capacity: range, inFlight: known(range) });

const hold = z.object({
  kind: z.enum(['pinned', 'frozen', 'open', 'bounds']),
  by: text,
  untilMs: known(ms).describe('null: until a person ends it'),
  leftMs: known(number),
  breakerHeld: z.boolean(),
});

const traffic = z.object({
  seen: z.boolean(),
  offeredPerSecond: number,
  admittedPerSecond: number,
  deniedPerSecond: counts,
  wouldDenyPerSecond: counts,
  inFlight: known(number),
  processes: number,
  reporting: number,
});

const worst = z.object({
  signal: text,
  value: number,
  setpoint: number,
  ratio: number.describe('above 1: the objective is missed'),
  unit,
  fresh: z.boolean(),
});

const loop = z.object({
  deadMs: known(number),
  gain: known(number),
  fit: known(number),
  changes: number,
  trust: number,
  follows: known(z.object({ cut: number, raise: number, headroom: number })),
  text,
});

export const status = z.object({
  limiter: limiterName,
  group: known(text),
  managed: z.boolean(),
  mode: known(mode),
  state: known(state),
  epoch: known(number),
  revision: known(number),
  policyHash: known(text),
  file: known(z.enum(['same', 'drift', 'pending', 'none'])),
  faults: z.array(text),
  law: known(text),
  clocks: known(z.object({ redisMs: known(number), servicesMs: number })),
  loop: known(loop),
  inForce: known(numbers),
  target: known(numbers),
  bounds: known(bounds),
  binds: z.enum(['rate', 'cap', 'subject', 'breaker', 'reserve', 'nothing', 'unknown']),
  traffic,
  worst: known(worst),
  missing: z.array(z.object({ signal: text, reason: text })),
  holds: z.array(hold),
  rollout: known(
    z.object({
      percent: number,
      subjects: z.array(text),
      by: z.enum(['subject', 'request']),
      setBy: z.enum(['person', 'policy']),
    }),
  ),
  canary: known(
    z.object({
      policy: text,
      limiter: text,
      percent: number,
      ...{ sinceMs: ms, judgedMs: ms, untilMs: ms },
      ended: known(z.enum(['failed', 'unproven', 'stopped'])),
      rests: known(text).describe('why the limiter itself decides for all just now'),
    }),
  ),
  routes: z.array(text),
  profile: known(z.object({ name: text, fromMs: ms, untilMs: ms })),
  openUntilMs: known(ms),
  daemon: z.object({
    alive: z.boolean(),
    owner: known(text),
    lastTickAgeMs: known(number),
    heartbeatLeftMs: number,
  }),
  gliding: z.boolean(),
  safe: known(z.object({ rate: number, inFlightMax: known(number) })),
  rateOnly: known(text),
  wouldBe: known(numbers.extend({ state })),
  lastChange: known(
    z.object({ revision: number, atMs: ms, actor: text, reason: text, sentence: text }),
  ),
}) satisfies z.ZodType<StatusView>;
