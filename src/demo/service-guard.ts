/** What stands before the checkout: nothing, a fixed in-flight cap, or Flyball's middleware. Stage: demo. */
import type { FastifyInstance, FastifyRequest } from 'fastify';

export type GuardKind = 'none' | 'cap' | 'flyball';

/** What a request tells its limiter about itself. */
export interface Report {
  dbWait(ms: number): void;
  upstream(outcome: 'ok' | 'failed', code?: string): void;
}

export interface Guard {
  reportOf(request: FastifyRequest): Report;
  close(): Promise<void>;
}

const SILENT: Report = { dbWait() {}, upstream() {} };

export async function guardService(
  app: FastifyInstance,
  kind: string,
  _poolWaiting: () => number,
): Promise<Guard> {
  if (kind === 'cap') fixedCap(app);
  return { reportOf: () => SILENT, close: async () => {} };
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
