/** A decision carried out on a request and an answer of `node:http`. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TakeDecision } from '../decision.js';
import { answerFields, denialOf, sendDenial, setFields } from './answer.js';
import { type Visit, watchResponse } from './visit.js';

/** A request that passed carries its decision: `req.flyball.note({ upstream, code, dbWaitMs })`. */
export interface WithDecision {
  flyball?: TakeDecision;
}

/** True: go on. False: it was answered, or nobody is there to answer. */
export function settleNode(
  visit: Visit,
  decision: TakeDecision,
  req: IncomingMessage,
  res: ServerResponse,
  legacyHeaders: boolean,
): boolean {
  if (isGone(req, res)) {
    decision.done('cancelled');
    return false;
  }
  setFields(res, answerFields(visit, decision, legacyHeaders));
  if (!decision.allowed) {
    sendDenial(res, denialOf(visit, decision));
    return false;
  }
  visit.admit(decision);
  watchResponse(res, visit);
  (req as WithDecision).flyball = decision;
  return true;
}

/** The client left while the decision was taken. A request whose body was read is `destroyed`, and still there. */
export function isGone(req: IncomingMessage, res: ServerResponse): boolean {
  return res.destroyed || res.closed || req.socket?.destroyed === true;
}
