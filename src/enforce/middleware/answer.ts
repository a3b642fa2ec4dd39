/** What a decision becomes in HTTP: header fields, and for a denial a status with a problem. Stage: enforce. */
import type { ServerResponse } from 'node:http';
import type { TakeDecision } from '../decision.js';
import { fieldsOf, type Quotas, quotasOf, retryFields, sameQuotas } from '../headers.js';
import type { Limiter } from '../limiter.js';
import { PROBLEM_TYPE, problemOf } from '../problem.js';
import type { Visit } from './visit.js';

const known = new WeakMap<Limiter, Quotas>();
const NONE: Readonly<Record<string, string>> = Object.freeze({});
/** Fields that are lists: each limiter of a request has its item. */
const LISTS = ['RateLimit-Policy', 'RateLimit'] as const;

/** Header fields of any answer; none in shadow and off, which change no answer. A denial always says when to come again. */
export function answerFields(
  visit: Visit,
  decision: TakeDecision,
  legacyHeaders: boolean,
): Readonly<Record<string, string>> {
  const { limiter, earlier } = visit;
  const own = fieldsFor(limiter, decision, legacyHeaders);
  visit.fields = earlier === null ? own : joined(earlier.fields, own);
  return visit.fields;
}

function fieldsFor(
  limiter: Limiter,
  decision: TakeDecision,
  legacyHeaders: boolean,
): Readonly<Record<string, string>> {
  // Decided without Redis: what is left fleet-wide is not known, so nothing is claimed.
  if (decision.allowed && decision.source !== 'redis' && decision.source !== 'unmanaged') {
    return NONE;
  }
  const numbers = limiter.numbers();
  if (numbers === null || numbers.mode === 'shadow' || numbers.mode === 'off') {
    return decision.allowed ? NONE : retryFields(decision);
  }
  let quotas = known.get(limiter);
  if (quotas === undefined || !sameQuotas(quotas, numbers, limiter.windowMs)) {
    quotas = quotasOf(limiter.name, numbers, limiter.windowMs);
    known.set(limiter, quotas);
  }
  return fieldsOf(quotas, decision, { legacyHeaders });
}

function joined(
  before: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const all = { ...before, ...own };
  for (const name of LISTS) {
    if (before[name] !== undefined && own[name] !== undefined) {
      all[name] = `${before[name]}, ${own[name]}`;
    }
  }
  return all;
}

export interface Denial {
  status: 429 | 503;
  contentType: string;
  body: string;
}

/** Other limiters that had admitted the request count it as cancelled: it is no answer of the service. */
export function denialOf(visit: Visit, decision: TakeDecision): Denial {
  visit.end('cancelled');
  const retry = visit.fields['Retry-After'];
  const problem =
    retry === undefined
      ? problemOf(visit.limiter.name, decision)
      : problemOf(visit.limiter.name, decision, Number(retry));
  return { status: problem.status, contentType: PROBLEM_TYPE, body: JSON.stringify(problem) };
}

/** On a plain answer; nothing once its head has been sent. */
export function setFields(res: ServerResponse, fields: Readonly<Record<string, string>>): void {
  if (res.headersSent) return;
  for (const name in fields) res.setHeader(name, fields[name]!);
}

export function sendDenial(res: ServerResponse, { status, contentType, body }: Denial): void {
  if (res.headersSent) return void res.end();
  res.statusCode = status;
  res.setHeader('Content-Type', contentType);
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}
