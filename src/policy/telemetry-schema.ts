/** Signals that the services themselves report. Stage: policy. */
import { z } from 'zod';
import { code } from './fields.js';
import { refuse, time } from './units.js';

/** 'mean' or a quantile 0…1. */
export const of = z.custom<'mean' | number>(
  (of) => of === 'mean' || (typeof of === 'number' && of > 0 && of < 1),
  { error: (issue) => refuse(issue.input, "'mean' or a quantile between 0 and 1 (0.95)") },
);

const source = z.literal('telemetry');

export const telemetrySignal = z.discriminatedUnion('stat', [
  z.strictObject({ source, stat: z.enum(['latency', 'dbWait', 'eventLoopDelay']), of }),
  z.strictObject({
    source,
    stat: z.enum([
      'timeoutRatio',
      'failuresInARow',
      'poolWaiting',
      'inFlight',
      'oldest',
      'offered',
      'admitted',
      'deniedRatio',
      'cpu',
      'memory',
    ]),
  }),
  z.strictObject({
    source,
    stat: z.literal('errorRatio'),
    /** Only failures with this code are counted. Default: all. */
    code: code.optional(),
    /** Only answers of this upstream. Default: all. */
    upstream: code.optional(),
  }),
  z.strictObject({
    source,
    stat: z.literal('slowRatio'),
    /** Answers that took longer are slow. */
    over: time({ min: 1 }),
  }),
  z.strictObject({
    source,
    stat: z.literal('goodput'),
    /** Only good answers that came within this time count. Default: all good ones. */
    within: time({ min: 1 }).optional(),
  }),
  z.strictObject({
    source,
    stat: z.literal('errors'),
    /** Count only failures with this code, of this upstream. */
    code: code.optional(),
    upstream: code.optional(),
  }),
]);
