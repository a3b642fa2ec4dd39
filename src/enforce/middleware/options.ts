/** What every middleware is given beside its limiter, checked with defaults filled in. Stage: enforce. */
import { FlyballTypeError } from '../../errors.js';
import type { Priority } from '../../redis/calls.js';
import { show } from '../arguments.js';
import { checkKnown } from '../known-options.js';
import type { Limiter } from '../limiter.js';
import { type AddressOptions, createNetworks } from '../proxies.js';
import type { Attributes } from '../subject-template.js';
import { type Adapter, AddressReader, pathOf, type RequestFacts } from './request-facts.js';
import type { IsFailure } from './visit.js';

/** Chooses the limiter of each request, by routes for instance. */
export interface LimiterSource {
  /** Null: none stands before this request. `route`: the pattern by which it was found. */
  match(request: RequestFacts): { limiter: Limiter; route?: string } | null;
  /** Awaited before the first request. */
  ready?(): Promise<void>;
}

/** One limiter for all requests, or what chooses it for each; null: the request passes. */
export type LimiterChoice = Limiter | LimiterSource | ((request: RequestFacts) => Limiter | null);

/** A priority that some callers may state themselves; from all others, and if it is no priority, `default`. */
export interface PriorityHeader<Req> {
  header: string;
  /** Networks from which the connection must come (`'loopback'`, `'10.0.0.0/8'`), or a function that says so. */
  trust: 'loopback' | readonly string[] | ((req: Req) => boolean);
}

/** Methods, so that a framework whose own typings choose `Req` lets you write the request's full type. */
export interface MiddlewareOptions<Req> extends AddressOptions {
  /**
   * Attributes that fill the subject's template: `req => ({ userId: req.user.id })`. Required when it names any but
   * `{ip}` and `{route}`. A request that lacks one is limited by its client's address. A promise is awaited.
   */
  attributes?(req: Req): Attributes | Promise<Attributes>;
  /** Tokens a request takes. Default 1. */
  cost?(req: Req): number;
  /** Of a function, or of a header of trusted callers. Default: `default`, whatever a client sends. */
  priority?: ((req: Req) => Priority) | PriorityHeader<Req>;
  /** Paths that are never limited nor counted, or a function. Default: the usual ones of health and metrics. */
  exempt?: readonly string[] | ((req: Req) => boolean);
  /** What `{route}` stands for, if not the framework's pattern: a name, or a function with few answers. */
  route?: string | ((req: Req) => string | undefined);
  /** Which answers are failures: what a breaker and `count: 'failures'` count. Default: those of status 500 and above. */
  isFailure?: (status: number) => boolean;
  /** Also send `X-RateLimit-*`. Default false. */
  legacyHeaders?: boolean;
}

export const EXEMPT: readonly string[] = ['/livez', '/readyz', '/healthz', '/health', '/metrics'];

const KNOWN = [
  'attributes',
  'cost',
  'priority',
  'exempt',
  'route',
  'isFailure',
  'legacyHeaders',
  'trustProxy',
  'proxyHeader',
  'ipv6Prefix',
] satisfies (keyof MiddlewareOptions<unknown>)[];
const PRIORITIES: readonly string[] = ['critical', 'default', 'sheddable'] satisfies Priority[];
const FUNCTIONS = ['attributes', 'cost', 'isFailure'] as const;

export interface Resolved<Req> {
  attributes: ((req: Req) => Attributes | Promise<Attributes>) | null;
  cost: ((req: Req) => number) | null;
  priority: ((req: Req) => Priority) | null;
  isExempt: ((req: Req) => boolean) | null;
  route: ((req: Req) => string | undefined) | null;
  isFailure: IsFailure;
  legacyHeaders: boolean;
  addresses: AddressReader;
}

/** `also`: options of this framework alone. */
export function resolveMiddleware<Req>(
  adapter: Adapter<Req>,
  options: MiddlewareOptions<Req>,
  also: readonly string[] = [],
): Resolved<Req> {
  checkKnown('the middleware', options, KNOWN, also);
  for (const field of FUNCTIONS) {
    const given = options[field];
    if (given !== undefined && typeof given !== 'function') {
      throw wrong(`${field} is ${show(given)}. Give a function, or leave it out.`);
    }
  }
  return {
    attributes: options.attributes ?? null,
    cost: options.cost ?? null,
    priority: priorityOf(adapter, options.priority),
    isExempt: exemptionOf(adapter, options.exempt ?? EXEMPT),
    route: routeOf(options.route),
    isFailure: options.isFailure ?? isServerError,
    legacyHeaders: options.legacyHeaders === true,
    addresses: new AddressReader(options),
  };
}

function isServerError(status: number): boolean {
  return status >= 500;
}

function exemptionOf<Req>(adapter: Adapter<Req>, exempt: unknown): ((req: Req) => boolean) | null {
  if (typeof exempt === 'function') return exempt as (req: Req) => boolean;
  if (!Array.isArray(exempt) || !exempt.every((path) => /^\/[^?#]*$/.test(String(path)))) {
    throw wrong(
      `exempt is ${show(exempt)}. Give paths that begin with '/' and have no query, [] for none, or a function of the request.`,
    );
  }
  if (exempt.length === 0) return null;
  const paths = new Set<string>(exempt);
  return (req) => paths.has(pathOf(adapter.url(req)));
}

function routeOf<Req>(route: unknown): ((req: Req) => string | undefined) | null {
  if (route === undefined) return null;
  if (typeof route === 'function') return route as (req: Req) => string | undefined;
  if (typeof route === 'string' && route !== '') return () => route;
  throw wrong(`route is ${show(route)}. Give a name, or a function of the request.`);
}

function priorityOf<Req>(
  adapter: Adapter<Req>,
  priority: MiddlewareOptions<Req>['priority'],
): ((req: Req) => Priority) | null {
  if (priority === undefined) return null;
  if (typeof priority === 'function') return priority;
  const { header, trust } = (priority ?? {}) as Partial<PriorityHeader<Req>>;
  if (typeof header !== 'string' || header === '' || trust === undefined) {
    throw wrong(
      `priority is ${show(priority)}. Give a function of the request, or { header: 'x-priority', trust: ['10.0.0.0/8'] }: a client must not choose its own priority unless told.`,
    );
  }
  const name = header.toLowerCase();
  const isTrusted = callersOf(adapter, trust);
  return (req) => {
    const stated = adapter.header(req, name);
    if (stated === undefined || !PRIORITIES.includes(stated) || !isTrusted(req)) return 'default';
    return stated as Priority;
  };
}

function callersOf<Req>(
  adapter: Adapter<Req>,
  trust: PriorityHeader<Req>['trust'],
): (req: Req) => boolean {
  if (typeof trust === 'function') return trust;
  const within = createNetworks('priority.trust', typeof trust === 'string' ? [trust] : trust);
  return (req) => within(adapter.peer(req));
}

function wrong(message: string): FlyballTypeError {
  return new FlyballTypeError('FLYBALL_E_ENFORCE_OPTION', message);
}
