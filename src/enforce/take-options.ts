/** What a caller may say of a take, of many, and of a wait. Stage: enforce. */
import type { Priority } from '../redis/calls.js';
import type { OnRedisError } from './arguments.js';

export interface TakeOptions {
  /** Tokens, > 0, at most 6 decimals. Default 1. */
  cost?: number;
  /** `sheddable` leaves a reserve to `default`, and that to `critical`. Default `default`. */
  priority?: Priority;
  /** Aborting rejects with its reason; before the call is sent, nothing is taken. */
  signal?: AbortSignal;
  /** Overrides the adopted policy's and the limiter's for this take. */
  onRedisError?: OnRedisError;
}

export interface TakeManyWish extends Pick<TakeOptions, 'cost' | 'priority'> {
  subject?: string | null;
}

export type TakeManyOptions = Pick<TakeOptions, 'signal' | 'onRedisError'>;

export interface WaitOptions extends TakeOptions {
  /** Longest wait, 1 ms … one day. Default 30000. */
  timeoutMs?: number;
}
