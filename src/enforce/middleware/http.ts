/** Limits before plain `node:http`, and before whatever is built on it: listeners, upgrades, Koa, Nest. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../clock.js';
import type { TakeDecision } from '../decision.js';
import { createWarnings } from '../warnings.js';
import { answerFields, denialOf } from './answer.js';
import { createGate, type Gate } from './gate.js';
import { settleNode, type WithDecision } from './node.js';
import type { LimiterChoice, MiddlewareOptions } from './options.js';
import { nodeAdapter } from './request-facts.js';
import type { Visit } from './visit.js';

export type { WithDecision } from './node.js';
export type {
  LimiterChoice,
  LimiterSource,
  MiddlewareOptions,
  PriorityHeader,
} from './options.js';
export type { RequestFacts } from './request-facts.js';

export interface HttpOptions extends MiddlewareOptions<IncomingMessage> {
  /**
   * Only for `wrap`: the request could not be decided, since a function of these options threw. Default: answer 500
   * and warn. Without `wrap` the promise rejects.
   */
  onError?: (error: unknown, req: IncomingMessage, res: ServerResponse) => void;
}

export interface HttpGuard {
  /** True: go on. False: it was answered (429, 503), or its client has left. The decision is `req.flyball`. */
  (req: IncomingMessage, res: ServerResponse): Promise<boolean>;
  /** `createServer(guard.wrap((req, res) => …))`. */
  wrap(listener: Listener): (req: IncomingMessage, res: ServerResponse) => void;
  /**
   * Before a socket is taken over: `server.on('upgrade', async (req, socket) => { if (await guard.upgrade(req, socket)) … })`.
   * The connection counts in flight until it closes, or until `req.flyball.done()`.
   */
  upgrade(req: IncomingMessage, socket: Duplex): Promise<boolean>;
}

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A plain request has a route only by the name that `route` gives it, or by which its limiter was found. */
const adapter = nodeAdapter<IncomingMessage>(
  (req) => req,
  () => null,
);

/** `const guard = flyball(limiter)`, then `if (await guard(req, res)) …` or `guard.wrap(listener)`. */
export function flyball(limiter: LimiterChoice, options: HttpOptions = {}): HttpGuard {
  const gate = createGate(adapter, limiter, options, ['onError']);
  const onError = options.onError ?? answer500();

  const guard = (req: IncomingMessage, res: ServerResponse) =>
    new Promise<boolean>((ok, no) => {
      gate.enter(
        req,
        req,
        () => ok(true),
        (visit, decision) => ok(settleNode(visit, decision, req, res, gate.legacyHeaders)),
        no,
      );
    });

  return Object.assign(guard, {
    wrap: (listener: Listener) => (req: IncomingMessage, res: ServerResponse) => {
      gate.enter(
        req,
        req,
        () => listener(req, res),
        (visit, decision) => {
          if (settleNode(visit, decision, req, res, gate.legacyHeaders)) return listener(req, res);
        },
        (error) => onError(error, req, res),
      );
    },
    upgrade: (req: IncomingMessage, socket: Duplex) => upgrade(gate, req, socket as Socket),
  });
}

function answer500(): NonNullable<HttpOptions['onError']> {
  const warn = createWarnings(systemClock);
  return (error, _req, res) => {
    warn(
      'FLYBALL_W_REQUEST_UNDECIDED',
      `a request could not be decided and was answered 500: ${(error as Error)?.stack ?? error}`,
    );
    if (!res.headersSent) res.statusCode = 500;
    res.end();
  };
}

function upgrade(
  gate: Gate<IncomingMessage>,
  req: IncomingMessage,
  socket: Socket,
): Promise<boolean> {
  // Nobody else listens yet: a client that resets its connection meanwhile would end the process.
  socket.on('error', ignore);
  const go = () => {
    socket.off('error', ignore);
    return true;
  };
  return new Promise<boolean>((ok, no) => {
    gate.enter(
      req,
      req,
      () => ok(go()),
      (visit, decision) => ok(settleUpgrade(gate, visit, decision, req, socket) && go()),
      (error) => {
        go();
        no(error);
      },
    );
  });
}

function settleUpgrade(
  gate: Gate<IncomingMessage>,
  visit: Visit,
  decision: TakeDecision,
  req: IncomingMessage,
  socket: Socket,
): boolean {
  if (socket.destroyed) {
    decision.done('cancelled');
    return false;
  }
  const fields = answerFields(visit, decision, gate.legacyHeaders);
  if (decision.allowed) {
    visit.admit(decision);
    visit.follow(socket);
    (req as WithDecision).flyball = decision;
    return true;
  }
  const { status, contentType, body } = denialOf(visit, decision);
  const head = { ...fields, 'Content-Type': contentType, Connection: 'close' };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return false;
}

function ignore(): void {}
