/** What stands before the checkout: nothing, a fixed in-flight cap, or Flyball's middleware. Stage: demo. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
// In your service: from 'flyball' and 'flyball/fastify'.
import { flyball } from '../enforce/middleware/fastify.js';
import { createLimiter, type TakeDecision } from '../index.js';

export type GuardKind = 'none' | 'cap' | 'flyball';

/** What a request tells its limiter about itself; a refusal of the ramp's cap or no guard at all listens to nothing. */
export interface Report {
  dbWait(ms: number): void;
  upstream(code: string | undefined): void;
}

type Limited = FastifyRequest & { flyball?: TakeDecision | null };

export interface Guard {
  reportOf(request: FastifyRequest): Report;
  close(): Promise<void>;
}

const SILENT: Report = { dbWait() {}, upstream() {} };

export async function guardService(
  app: FastifyInstance,
  kind: GuardKind,
  poolWaiting: () => number,
): Promise<Guard> {
  if (kind === 'flyball') return withFlyball(app, poolWaiting);
  if (kind === 'cap') fixedCap(app);
  return { reportOf: () => SILENT, close: async () => {} };
}

/** All that a service adds: a limiter, the middleware, its pool's queue, and what it knows of its upstream. */
async function withFlyball(app: FastifyInstance, poolWaiting: () => number): Promise<Guard> {
  const limiter = createLimiter({
    name: 'checkout',
    rate: 100,
    capacity: 50,
    inFlightMax: 24,
    ...(process.env.FLYBALL_PREFIX ? { prefix: process.env.FLYBALL_PREFIX } : {}),
  });
  await app.register(flyball, { limiter });
  limiter.reportPool(poolWaiting);
  return {
    reportOf: ({ flyball: decision }: Limited) => ({
      dbWait: (ms) => decision?.note({ dbWaitMs: ms }),
      upstream: (code) => decision?.note({ upstream: 'payment', ...(code ? { code } : {}) }),
    }),
    close: () => limiter.close(),
  };
}

/** The ramp's limiter: at most `cap` under way, the rest turned away at once. The demo moves it by message. */
function fixedCap(app: FastifyInstance): void {
  let cap = 1;
  let underWay = 0;
  process.on('message', (message: { type: string; cap?: number }) => {
    if (message.type === 'cap' && message.cap) cap = message.cap;
  });
  app.addHook('onRequest', async (request, reply) => {
    if (underWay >= cap) return reply.code(503).header('retry-after', '1').send();
    underWay += 1;
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      underWay -= 1;
    };
    reply.raw.once('finish', end);
    reply.raw.once('close', end);
    request.raw.once('error', end);
  });
}
