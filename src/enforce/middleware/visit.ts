/** One request under one limiter, from the decision to its end, which is reported once however it comes. Stage: enforce. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TakeDecision } from '../decision.js';
import type { Limiter } from '../limiter.js';
import type { Outcome, OutcomeInfo } from '../recorder.js';

const VISIT = Symbol('flyball.visit');
const UNDER_WAY = Symbol('flyball.underWay');
const TIMED_OUT = Symbol('flyball.timedOut');

interface Marked {
  [VISIT]?: Visit;
}
type MarkedResponse = ServerResponse & Marked;
type MarkedSocket = Socket & { [UNDER_WAY]?: Visit | null; [TIMED_OUT]?: boolean };

/** What a request is a kind of; asked for when it ends, when the framework has found its handler. */
export interface Named {
  /** `GET /users/:id`. */
  readonly kind: string | null;
}

/** Is an answer of this status a failure of the service? */
export type IsFailure = (status: number) => boolean;

/** The limiters that a request has met form a chain, the newest first. */
export class Visit {
  readonly limiter: Limiter;
  readonly earlier: Visit | null;
  decision: TakeDecision | null = null;
  /** Header fields of its answer, with those of the earlier limiters. */
  fields: Readonly<Record<string, string>> = NONE;
  /** While under way it stands in a list of its socket: a pipeline has several. */
  #socket: MarkedSocket | null = null;
  #before: Visit | null = null;
  #after: Visit | null = null;

  readonly #isFailure: IsFailure;
  readonly #named: Named;

  constructor(limiter: Limiter, earlier: Visit | null, isFailure: IsFailure, named: Named) {
    this.limiter = limiter;
    this.earlier = earlier;
    this.#isFailure = isFailure;
    this.#named = named;
  }

  /** What a handler notes reaches each limiter that admitted the request. */
  admit(decision: TakeDecision): void {
    this.decision = decision;
    const { earlier } = this;
    if (earlier?.decision == null) return;
    const own = decision.note.bind(decision);
    const before = earlier.decision;
    decision.note = (info) => {
      own(info);
      before.note(info);
    };
  }

  /** The answer went out with this status. Later calls change nothing. */
  answered(status: number): void {
    const info = infoOf(this.#named);
    for (let visit: Visit | null = this; visit !== null; visit = visit.earlier) {
      if (visit.#isFailure(status)) {
        visit.decision?.done('failed', { ...info, code: `HTTP_${status}` });
      } else visit.decision?.done('ok', info);
      visit.#forget();
    }
  }

  /** It ended otherwise. Later calls change nothing. */
  end(outcome: Outcome): void {
    const info = outcome === 'cancelled' ? undefined : infoOf(this.#named);
    for (let visit: Visit | null = this; visit !== null; visit = visit.earlier) {
      visit.decision?.done(outcome, info);
      visit.#forget();
    }
  }

  /** A pipelined answer is not told when its client leaves, and a hijacked one never: the socket always is. */
  follow(socket: MarkedSocket): void {
    const first = socket[UNDER_WAY];
    if (first === undefined) {
      socket.on('close', socketClosed);
      socket.on('timeout', socketTimedOut);
    } else if (first !== null) {
      first.#before = this;
      this.#after = first;
    }
    socket[TIMED_OUT] = false;
    socket[UNDER_WAY] = this;
    this.#socket = socket;
  }

  get timedOut(): boolean {
    return this.#socket?.[TIMED_OUT] === true;
  }

  #forget(): void {
    const socket = this.#socket;
    if (socket === null) return;
    if (this.#before === null) socket[UNDER_WAY] = this.#after;
    else this.#before.#after = this.#after;
    if (this.#after !== null) this.#after.#before = this.#before;
    this.#socket = this.#before = this.#after = null;
  }
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/** What the service itself wrote to name routes may throw, and the answer is out: it has no name then. */
function infoOf(named: Named): OutcomeInfo | undefined {
  try {
    const { kind } = named;
    return kind === null ? undefined : { route: kind };
  } catch {
    return undefined;
  }
}

/** The newest visit of a request; `carrier` is any object that lives as long as the request. */
export function visitOf(carrier: object): Visit | null {
  return (carrier as Marked)[VISIT] ?? null;
}

/** Null if this limiter has met the request before, however the middleware came to be mounted twice. */
export function beginVisit(
  carrier: object,
  limiter: Limiter,
  isFailure: IsFailure,
  named: Named,
): Visit | null {
  const newest = visitOf(carrier);
  for (let visit = newest; visit !== null; visit = visit.earlier) {
    if (visit.limiter === limiter) return null;
  }
  const visit = new Visit(limiter, newest, isFailure, named);
  (carrier as Marked)[VISIT] = visit;
  return visit;
}

/** Report the end of the answer: sent, cut off by a timeout of the server, or left by its client. */
export function watchResponse(res: MarkedResponse, visit: Visit): void {
  if (res[VISIT] === undefined) {
    res.on('finish', finished);
    res.on('close', closed);
  }
  res[VISIT] = visit;
  // HTTP/2 has one socket for many requests, and tells each of its end.
  if ((res as { stream?: unknown }).stream === undefined && res.socket !== undefined) {
    const socket = res.socket ?? res.req?.socket;
    if (socket) visit.follow(socket);
  }
}

function finished(this: MarkedResponse): void {
  const visit = this[VISIT];
  // Its close has nothing to add.
  this[VISIT] = undefined;
  // HTTP/2 finishes an answer that was cut off, too.
  if (!this.writableEnded) visit?.end('cancelled');
  else visit?.answered(this.statusCode);
}

function closed(this: MarkedResponse): void {
  cutOff(this[VISIT]);
}

function cutOff(visit: Visit | undefined): void {
  if (visit !== undefined) visit.end(visit.timedOut ? 'timed_out' : 'cancelled');
}

function socketClosed(this: MarkedSocket): void {
  for (let visit = this[UNDER_WAY]; visit; visit = this[UNDER_WAY]) cutOff(visit);
}

/** The server's own listener destroys the socket, unless the service does something about it. */
function socketTimedOut(this: MarkedSocket): void {
  this[TIMED_OUT] = true;
}
