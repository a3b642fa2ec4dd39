/** The form of what commands say with `--json`; where HTTP answers the same, it is that of the API. Stage: test. */
import { z } from 'zod';
import { auditRecord, explainAnswer } from '../../src/api/schemas/audit.js';
import { known, ms, schemaOne, values } from '../../src/api/schemas/common.js';
import { debugAnswer } from '../../src/api/schemas/debug.js';
import { reportAnswer } from '../../src/api/schemas/episodes.js';
import { signalsAnswer } from '../../src/api/schemas/limiters.js';
import { policyHistoryAnswer } from '../../src/api/schemas/policies.js';
import { status } from '../../src/api/schemas/status.js';

/** Of a verb of one limiter, done or as it would be. */
export const VERB_FORM = z.object({
  schema: schemaOne,
  limiter: z.literal('checkout'),
  verb: z.string().regex(/^[a-z_]+$/),
  status: z.enum(['done', 'dry_run']),
  epoch: z.number().int(),
  revision: z.number().int(),
  before: values,
  after: values,
  hold: known(z.object({ untilMs: known(ms) })),
  sentence: z.string().min(10),
  notes: z.array(z.string()),
});

/** By command. */
export const FORMS: Readonly<Record<string, z.ZodType>> = {
  status: z.object({ schema: schemaOne, limiters: z.array(status).length(1) }),
  signals: z.object({
    schema: schemaOne,
    limiters: z.array(signalsAnswer.omit({ schema: true })).length(1),
  }),
  audit: z.object({ schema: schemaOne, entries: z.array(auditRecord).min(1) }),
  // HTTP adds the signals for a chart, and names limiters that it could not read.
  explain: explainAnswer.omit({ signals: true }),
  report: reportAnswer.omit({ unreadable: true }),
  debug: debugAnswer,
  // The text of a version has a command of its own, `policy show`.
  'policy history': policyHistoryAnswer.extend({
    versions: z.array(policyHistoryAnswer.shape.versions.element.omit({ text: true })).min(1),
  }),
};
