/** Where a policy's alerts go: one strict schema a kind of destination. Stage: policy. */
import { z } from 'zod';
import { envRef } from './signals-schema.js';

/** What is told, from the rarest to the least urgent; `docs/guides/alerts.md` says when each begins and ends. */
export const ALERT_KINDS = [
  'trip',
  'retrip',
  'redis_away',
  'evictions',
  'params_restored',
  'at_floor',
  'denied',
  'subjects_overflow',
  'fallback',
  'slow_decisions',
  'signal_lost',
  'policy_failed',
  'failover',
  'writes_lost',
  'auto_rollback',
  'canary_failed',
  'lease_lost',
  'hold_ending',
  'test',
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** What every destination may say. */
const common = {
  /** Only these. Default: all. */
  on: z.array(z.enum(ALERT_KINDS)).min(1).optional(),
  /** Most messages a minute; what is more is told as one line. Default 10. */
  perMinute: z
    .number({ error: 'is no number of messages a minute: give 1 to 600.' })
    .int()
    .min(1)
    .max(600)
    .optional(),
};

const address = z.union([envRef, z.string()]);
const mailbox = z
  .string()
  .regex(/^[^\s@<>,;"]{1,64}@[^\s@<>,;"]{1,190}$/, 'is not one address (oncall@example.com)');

export const destinationSchema = z.discriminatedUnion('to', [
  z.strictObject({
    to: z.literal('webhook'),
    url: address,
    /** Signs each message, as Standard Webhooks says. */
    secret: envRef.optional(),
    ...common,
  }),
  z.strictObject({
    to: z.literal('alertmanager'),
    url: address,
    /** `Authorization: Bearer …`. */
    token: envRef.optional(),
    ...common,
  }),
  z.strictObject({
    to: z.literal('email'),
    /** `smtp://user:password@host:587`, or `smtps://`. */
    smtp: address,
    from: mailbox,
    recipients: z.array(mailbox).min(1).max(20),
    ...common,
  }),
  // The addresses of chat hooks are secrets themselves.
  z.strictObject({ to: z.literal('slack'), url: envRef, ...common }),
  z.strictObject({ to: z.literal('wecom'), url: envRef, ...common }),
  z.strictObject({ to: z.literal('feishu'), url: envRef, secret: envRef.optional(), ...common }),
  z.strictObject({ to: z.literal('dingtalk'), url: envRef, secret: envRef.optional(), ...common }),
  z.strictObject({
    to: z.literal('pagerduty'),
    routingKey: envRef,
    /** Default: PagerDuty's own. */
    url: address.optional(),
    ...common,
  }),
]);

export const notifySchema = z.array(destinationSchema).max(10, 'are more than 10 destinations.');
export type Destination = z.output<typeof destinationSchema>;
export type DestinationInput = z.input<typeof destinationSchema>;
