/** Who asks, as zod. Stage: api. */
import { z } from 'zod';
import type { SessionAnswer } from '../types.js';
import { known, number, role, schemaOne, text } from './common.js';

export const sessionAnswer = z.object({
  schema: schemaOne,
  name: known(text),
  role: known(role),
  by: z.enum(['open', 'token', 'cookie', 'nobody']),
  expiresMs: known(number),
  version: text,
  daemon: text,
}) satisfies z.ZodType<SessionAnswer>;
