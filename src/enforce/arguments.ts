/** What a caller may pass to a limiter, checked before anything is written. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import type { Priority } from '../redis/calls.js';
import type { OnRedisError } from '../redis/params.js';

export type { OnRedisError } from '../redis/params.js';

const PRIORITIES: readonly string[] = ['critical', 'default', 'sheddable'];
const ON_REDIS_ERROR: readonly string[] = ['open', 'closed', 'local'];

/** Longer subjects are refused: they are hashed anyway, and hashing a book on each request is a fault elsewhere. */
export const MAX_SUBJECT_LENGTH = 65_536;
/** Above this a number no longer keeps six decimals apart. */
const MAX_COST = 1e9;
const MICRO = 1e6;

/** A cost is a number of tokens: > 0, ≤ 1e9, at most six decimals. */
export function checkCost(cost: unknown): asserts cost is number {
  if (cost === 1) return;
  if (!isCost(cost)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_COST',
      `cost is ${show(cost)}. Use a number > 0 and ≤ 1e9 with at most 6 decimals; to look without taking, call peek().`,
    );
  }
}

export function isCost(cost: unknown): cost is number {
  return (
    typeof cost === 'number' &&
    cost > 0 &&
    cost <= MAX_COST &&
    Math.round(cost * MICRO) / MICRO === cost
  );
}

/** A subject is a non-empty, well-formed Unicode string; `undefined` and `null` mean: only the total's bucket. */
export function checkSubject(subject: unknown): asserts subject is string | null | undefined {
  if (subject === undefined || subject === null) return;
  if (typeof subject !== 'string' || subject === '') {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_SUBJECT',
      `subject is ${show(subject)}. Use a non-empty string, or leave it out to take from the total only.`,
    );
  }
  if (subject.length > MAX_SUBJECT_LENGTH) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_SUBJECT',
      `subject has ${subject.length} characters. Use at most ${MAX_SUBJECT_LENGTH}.`,
    );
  }
  if (!wellFormed(subject)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_SUBJECT',
      `subject ${show(subject)} is not well-formed Unicode (a lone surrogate). Clean it with toWellFormed().`,
    );
  }
}

export function checkPriority(priority: unknown): asserts priority is Priority {
  if (typeof priority !== 'string' || !PRIORITIES.includes(priority)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_PRIORITY',
      `priority is ${show(priority)}. Use 'critical', 'default' or 'sheddable'.`,
    );
  }
}

export function checkOnRedisError(value: unknown): asserts value is OnRedisError {
  if (typeof value !== 'string' || !ON_REDIS_ERROR.includes(value)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `onRedisError is ${show(value)}. Use 'open', 'closed' or 'local'.`,
    );
  }
}

/** A duration in milliseconds within [min, max]. */
export function checkDuration(field: string, value: unknown, minMs: number, maxMs: number): number {
  if (typeof value !== 'number' || !(value >= minMs && value <= maxMs)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_DURATION',
      `${field} is ${show(value)}. Use a number of milliseconds from ${minMs} to ${maxMs}.`,
    );
  }
  return value;
}

/** A whole number from 1 to `most`. */
export function checkWhole(field: string, value: unknown, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `${field} is ${show(value)}. Use a whole number from 1 to ${most}.`,
    );
  }
  return value;
}

/** What `take` is given beside the subject: an object; a signal that is one; and what `run` is to run. */
export function checkCall(
  take: unknown,
  signal: unknown,
  what = 'the second argument of take',
): void {
  if (typeof take === 'object' && take !== null) {
    if (signal === undefined || isSignal(signal)) return;
    throw wrongCall('signal', signal, 'the `signal` of an AbortController');
  }
  throw wrongCall(what, take, 'an object, or leave it out');
}

/** All of it that is used, so that none of it is missed when a place is held already. */
function isSignal(value: unknown): boolean {
  const { throwIfAborted, addEventListener, removeEventListener } = (value ?? {}) as AbortSignal;
  return [throwIfAborted, addEventListener, removeEventListener].every(isFunction);
}

const isFunction = (value: unknown) => typeof value === 'function';

/** Bounds what one call holds in memory; more come in several. */
const MOST_WISHES = 10_000;

/** What `takeMany` is given: an array of objects. */
export function checkWishes(wishes: unknown): void {
  if (!Array.isArray(wishes) || wishes.length > MOST_WISHES) {
    const given = Array.isArray(wishes) ? `${wishes.length} wishes` : show(wishes);
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `takeMany was given ${given}. Give an array of at most ${MOST_WISHES} { subject, cost, priority }.`,
    );
  }
  for (const [i, wish] of wishes.entries()) checkCall(wish, undefined, `wish ${i} of takeMany`);
}

export function checkFunction(
  fn: unknown,
  what = 'the second argument of run',
  example = 'run(subject, () => …)',
): void {
  if (typeof fn !== 'function') throw wrongCall(what, fn, `a function: ${example}`);
}

function wrongCall(what: string, value: unknown, allowed: string): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `${what} is ${show(value)}. Give ${allowed}.`,
  );
}

/** A limit's number: finite and > 0 (whole where a cap asks for it). */
export function checkNumber(field: string, value: unknown, whole = false): number {
  if (
    typeof value !== 'number' ||
    !(value > 0 && value <= MAX_COST) ||
    (whole && value % 1 !== 0)
  ) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `${field} is ${show(value)}. Use a ${whole ? 'whole number' : 'number'} > 0 and ≤ 1e9.`,
    );
  }
  return value;
}

/** A value as an error shows it: short, and with -0, NaN and strings told apart. */
export function show(value: unknown): string {
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value);
  }
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object';
  if (typeof value === 'function') return 'a function';
  return String(value);
}

function wellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** Redis reads costs more strictly than numbers can be checked here. */
export function costRefused(cost: number): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_COST',
    `Redis refused the cost ${cost}. Use a number > 0 with at most 6 decimals.`,
  );
}
