/** A decision's id: all that a refund needs, as one text that any process of the service can hand in. Stage: enforce. */
import { randomBytes } from 'node:crypto';
import { FlyballTypeError } from '../errors.js';
import { ALGORITHMS, type AlgorithmTerms } from '../redis/algorithms.js';
import type { RefundRequest } from '../redis/refund.js';
import { isCost, MAX_SUBJECT_LENGTH, show } from './arguments.js';

const VERSION = 1;
const MARK_BYTES = 12;
const MARK = /^[A-Za-z0-9_-]{16}$/;
/** A subject of the longest kind, in base64 of UTF-8, and the rest. */
const MAX_LENGTH = MAX_SUBJECT_LENGTH * 8 + 1024;

export interface RefundToken {
  request: RefundRequest & { mark: string };
  shadow: boolean;
}

/** Nobody guesses it, so that nobody gives back what another took. */
export function newMark(): string {
  return randomBytes(MARK_BYTES).toString('base64url');
}

export function writeRefundId(limiter: string, { request, shadow }: RefundToken): string {
  const { mark, atUs, epoch, generation, cost, subject, terms } = request;
  const { algorithm = null, windowMs = 0, cells = 0 } = terms ?? {};
  return Buffer.from(
    JSON.stringify([
      VERSION,
      limiter,
      mark,
      Math.round(atUs),
      epoch,
      generation,
      cost,
      subject,
      algorithm,
      windowMs,
      cells,
      shadow,
    ]),
  ).toString('base64url');
}

/** Throws for a text that is no id, or that of another limiter. */
export function readRefundId(limiter: string, id: string): RefundToken {
  const parts = id.length <= MAX_LENGTH ? parse(id) : null;
  const token = parts && tokenOf(parts);
  if (!token) {
    throw refused(`${show(id)} is no id of a decision. Give the decision of a take, or its id`);
  }
  if (parts[1] !== limiter) {
    throw refused(
      `the id is that of limiter ${show(parts[1])}, not of ${show(limiter)}. Ask the limiter that decided`,
    );
  }
  return token;
}

/** Whose decision an id is of; null: it is none. */
export function limiterOfId(id: string): string | null {
  const limiter = id.length <= MAX_LENGTH ? parse(id)?.[1] : null;
  return typeof limiter === 'string' ? limiter : null;
}

function parse(id: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(id, 'base64url').toString('utf8'));
    return Array.isArray(value) && value.length === 12 && value[0] === VERSION ? value : null;
  } catch {
    return null;
  }
}

function tokenOf(parts: unknown[]): RefundToken | null {
  const [, limiter, mark, atUs, epoch, generation, cost, subject, name, windowMs, cells, shadow] =
    parts;
  const algorithm = ALGORITHMS.find((each) => each === name);
  const known =
    typeof limiter === 'string' &&
    typeof mark === 'string' &&
    MARK.test(mark) &&
    [atUs, epoch, generation, windowMs, cells].every(isCount) &&
    isCost(cost) &&
    (subject === null || (typeof subject === 'string' && subject !== '')) &&
    (name === null || algorithm !== undefined) &&
    typeof shadow === 'boolean';
  if (!known) return null;
  const terms: AlgorithmTerms | undefined = algorithm && {
    algorithm,
    windowMs: windowMs as number,
    cells: cells as number,
  };
  const request = {
    subject: subject as string | null,
    cost,
    atUs: atUs as number,
    epoch: epoch as number,
    generation: generation as number,
    terms,
    mark,
  };
  return { request, shadow };
}

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;

export function refused(what: string): FlyballTypeError {
  return new FlyballTypeError('FLYBALL_E_ENFORCE_REFUND', `refund: ${what}.`);
}
