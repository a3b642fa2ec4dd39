/** The fleet and what a stream tells, as zod. Stage: api. */
import { z } from 'zod';
import type { FleetAnswer, LimitersEvent, SnapshotEvent, TickEvent } from '../types.js';
import { auditRecord } from './audit.js';
import { known, ms, number, schemaOne, text } from './common.js';
import { point } from './limiters.js';
import { status } from './status.js';

export const fleetAnswer = z.object({
  schema: schemaOne,
  atMs: ms,
  daemons: z.array(
    z.object({
      owner: text,
      name: text,
      host: text,
      pid: known(number),
      http: text,
      version: known(text),
      leads: number,
      policyFaults: number,
      silentMs: number,
      self: z.boolean(),
    }),
  ),
  redis: z.object({
    url: text,
    roundTripMs: number,
    aheadMs: number,
    version: known(text),
    role: known(text),
    replicas: known(number),
    usedBytes: known(number),
    maxBytes: known(number),
    evictionPolicy: known(text),
    evictedKeys: known(number),
    appendOnly: known(z.boolean()),
    uptimeS: known(number),
    unknown: known(text),
  }),
  leases: z.array(z.object({ limiter: text, owner: known(text), lastTickAgeMs: known(number) })),
}) satisfies z.ZodType<FleetAnswer>;

const tick = z.object({
  atMs: ms,
  everyMs: number,
  redisAway: known(text),
}) satisfies z.ZodType<TickEvent>;

/** The data of each event of the stream. */
export const streamEvents = {
  snapshot: tick.extend({ limiters: z.array(status) }) satisfies z.ZodType<SnapshotEvent>,
  limiters: z.object({
    atMs: ms,
    limiters: z.array(status),
    gone: z.array(text),
    points: z.array(point.extend({ limiter: text })),
  }) satisfies z.ZodType<LimitersEvent>,
  audit: z.object({ entries: z.array(auditRecord) }),
  tick,
};
