/** Why one subject is answered as it is, asked of Redis without letting it write. Stage: api. */
import { z } from 'zod';
import { readDebug } from '../../view/debug.js';
import { limiterOf, route } from '../route.js';
import { debugAnswer } from '../schemas/debug.js';

export const debugRoutes = [
  route({
    method: 'get',
    path: '/limiters/{limiter}/debug',
    id: 'readDebug',
    summary: 'Why a subject is answered as it is, step by step, as `flyball debug --json`.',
    role: 'reader',
    query: z.strictObject({
      subject: z.string().min(1).max(1000),
      cost: z
        .string()
        .regex(/^(0|[1-9]\d{0,8})(\.\d{1,6})?$/, 'is no number of tokens')
        .transform(Number)
        .refine((n) => n > 0, 'is no number above 0')
        .default(1),
      priority: z.enum(['critical', 'default', 'sheddable']).default('default'),
      request: z
        .string()
        .max(2000)
        .regex(/^[A-Z]+ \/\S*$/, "is no request: 'POST /api/pay'")
        .optional(),
    }),
    answer: debugAnswer,
    faults: [404],
    async handle(call) {
      const { subject, cost, priority, request } = call.query;
      const [method = '', path = ''] = request?.split(' ') ?? [];
      const asked = request === undefined ? undefined : { method, path };
      const address = await limiterOf(call);
      const view = await readDebug(call.session, address, {
        subject,
        cost,
        priority,
        request: asked,
      });
      return { schema: 1, ...view };
    },
  }),
];
