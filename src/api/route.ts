/** What a route is: one record that says what it takes, what it answers, who may, and does it; the document is made from the same. Stage: api. */
import type { z } from 'zod';
import type { LoadedPolicy } from '../actuate/adopt.js';
import type { Clock } from '../clock.js';
import type { PolicyFault } from '../errors.js';
import type { Logger } from '../log.js';
import type { LimiterAddress } from '../redis/keys.js';
import { findLimiter, type Session } from '../view/limiters.js';
import type { Caller } from './roles.js';
import type { Sessions } from './sessions.js';
import type { SharedAnswers } from './shared.js';
import type { StreamPlaces } from './stream-places.js';
import type { TokenStore } from './token-store.js';
import type { Role } from './types.js';
import type { Watch } from './watch.js';

/** What all routes share. */
export interface ApiDeps {
  /** Where limiters are. */
  session: Session;
  tokens: TokenStore;
  sessions: Sessions;
  watch: Watch;
  /** How many streams each client holds. */
  streams: StreamPlaces;
  shared: SharedAnswers;
  clock: Clock;
  log: Logger;
  /** The policy files of this daemon, as last read. */
  policies(): { loaded: readonly LoadedPolicy[]; faults: readonly PolicyFault[] };
  /** How often a quiet stream says that it is alive. Default 10 s. */
  heartbeatMs?: number;
  /** Who answers. */
  daemon: { owner: string; name: string };
}

/** One request, checked. */
export interface Call<Query, Body> {
  deps: ApiDeps;
  session: Session;
  caller: Caller;
  /** Whose requests count together: a token, or the address of who has none. */
  client: string;
  /** Of the path, decoded. */
  path: Readonly<Record<string, string>>;
  query: Query;
  body: Body;
  /** Names in lower case. */
  header(name: string): string | undefined;
  /** May the caller still ask this? A token may have been taken back since. */
  stillMay(): boolean;
  /** Ends the connection, whatever is still to be sent. */
  hangUp(): void;
}

export interface RouteSpec<Query extends z.ZodType, Body extends z.ZodType, Answer> {
  method: 'get' | 'post' | 'delete';
  /** `/limiters/{limiter}/audit`, below `/api/v1`. */
  path: string;
  /** Unique, for generated clients. */
  id: string;
  summary: string;
  /** null: anybody may. */
  role: Role | null;
  /** Needs no header of its own with a cookie: it is how one comes by a cookie. */
  signsIn?: boolean;
  /** It reads all limiters, or a long log: the answer, the same for whoever asks, is read once a tick. */
  shared?: boolean;
  /** Though it has a body nothing is another than before: answers that are shared stand. */
  changesNothing?: boolean;
  query?: Query;
  body?: Body;
  answer: z.ZodType<Answer>;
  /** Statuses beside 200 that come of what the route does. */
  faults?: readonly number[];
  /** A `Response` is sent as it is. */
  handle(call: Call<z.output<Query>, z.output<Body>>): Promise<Answer | Replied<Answer> | Response>;
}

/** An answer with headers. */
export interface Replied<Answer> {
  answer: Answer;
  headers: Record<string, string>;
}

/** A route whose types are forgotten: what the table holds. */
export type Route = RouteSpec<z.ZodType, z.ZodType, object>;

export function route<Query extends z.ZodType, Body extends z.ZodType, Answer extends object>(
  spec: RouteSpec<Query, Body, Answer>,
): Route {
  return spec as unknown as Route;
}

/** The limiter that the path names. */
export function limiterOf(call: Call<unknown, unknown>): Promise<LimiterAddress> {
  return findLimiter(call.session, call.path.limiter ?? '');
}
