/** The fleet and what a stream tells, as zod. Stage: api. */
import { z } from 'zod';
import { ALERT_KINDS } from '../../policy/notify-schema.js';
import type {
  AlertsAnswer,
  FleetAnswer,
  LimitersEvent,
  ShownAnswer,
  SnapshotEvent,
  TickEvent,
} from '../types.js';
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
      exports: known(
        z.array(
          z.object({
            kind: z.enum(['file', 'postgres']),
            to: text.describe('a folder, or a database without its login'),
            writes: z.boolean().describe('false: another daemon writes there'),
            signedBy: known(text).describe('id of the key that signs heads; null: nobody does'),
            headsMs: known(number),
            lagMs: known(number).describe('age of the oldest entry that is not there yet'),
            last: known(z.object({ limiter: text, epoch: number, revision: number, atMs: ms })),
            fault: known(text),
          }),
        ),
      ).describe('where its audit logs go; null: its version does not say'),
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

export const alertsAnswer = z.object({
  schema: schemaOne,
  atMs: ms,
  alerts: z.array(
    z.object({
      id: text,
      kind: z.enum(ALERT_KINDS),
      severity: z.enum(['critical', 'warning', 'info']),
      state: z.enum(['firing', 'event', 'resolved']),
      limiter: known(text).describe('null: it concerns all of them'),
      owner: known(text),
      ...{ what: text, why: text, who: text },
      numbers: z.array(z.object({ name: text, value: text })),
      undo: known(text).describe('the command that takes it back'),
      look: text.describe('the command that shows more'),
      sinceMs: number,
      endedMs: known(number),
      keeper: text.describe('the daemon that answers for it'),
    }),
  ),
  more: z.boolean(),
}) satisfies z.ZodType<AlertsAnswer>;

const tick = z.object({
  atMs: ms,
  lookMs: number,
  everyMs: number,
  redisAway: known(text),
}) satisfies z.ZodType<TickEvent>;

export const shownAnswer = z.object({
  schema: schemaOne,
  limiters: number.describe('how many of them are known here'),
  forMs: ms.describe('for so long'),
}) satisfies z.ZodType<ShownAnswer>;

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
