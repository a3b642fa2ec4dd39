/** What the demo measures inside the checkout process: the cost of a decision, and requests that wait for the pool. Stage: demo. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { emptyHistogram, record } from './histogram.js';

const EVERY_MS = 250;
const BEGAN = Symbol('began');
type Timed = FastifyRequest & { [BEGAN]?: number | undefined };

/** Hooks right before and right after the limiter's; both see all requests, refused ones at their answer. */
export function createServiceProbe(poolWaiting: () => number) {
  let decisions = emptyHistogram();

  function decided(request: Timed) {
    const began = request[BEGAN];
    if (began === undefined) return;
    request[BEGAN] = undefined;
    record(decisions, performance.now() - began);
  }

  const timer = setInterval(() => {
    process.send?.({ type: 'probe', poolWaiting: poolWaiting(), decisions });
    decisions = emptyHistogram();
  }, EVERY_MS);
  timer.unref();

  return {
    beforeDecision(app: FastifyInstance) {
      app.addHook('onRequest', (request: Timed, _reply, next) => {
        request[BEGAN] = performance.now();
        next();
      });
    },
    afterDecision(app: FastifyInstance) {
      app.addHook('onRequest', (request: Timed, _reply, next) => {
        decided(request);
        next();
      });
      app.addHook('onSend', (request: Timed, _reply, payload, next) => {
        decided(request);
        next(null, payload);
      });
    },
  };
}
