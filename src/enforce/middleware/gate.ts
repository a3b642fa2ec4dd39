/** The way of a request to its decision, the same before every framework. Stage: enforce. */
import { FlyballTypeError } from '../../errors.js';
import { show } from '../arguments.js';
import type { TakeDecision } from '../decision.js';
import type { Limiter } from '../limiter.js';
import { after } from '../pacing.js';
import type { Attributes } from '../subject-template.js';
import type { TakeOptions } from '../take-options.js';
import {
  type LimiterChoice,
  type LimiterSource,
  type MiddlewareOptions,
  resolveMiddleware,
} from './options.js';
import { type Adapter, Facts } from './request-facts.js';
import { beginVisit, type Visit } from './visit.js';

export interface Gate<Req> {
  readonly legacyHeaders: boolean;
  /**
   * Calls one of the three, once. `pass`: there is nothing to decide, since the request is exempt, no limiter stands
   * before it, or this one has decided on it already. `settle`: here is the decision, which paces no longer.
   * `carrier`: an object that lives as long as the request.
   */
  enter(
    req: Req,
    carrier: object,
    pass: () => void,
    settle: (visit: Visit, decision: TakeDecision) => void,
    fail: (error: unknown) => void,
  ): void;
}

const NO_ATTRIBUTES: Attributes = Object.freeze({});

export function createGate<Req>(
  adapter: Adapter<Req>,
  choice: LimiterChoice,
  options: MiddlewareOptions<Req> = {},
  also: readonly string[] = [],
): Gate<Req> {
  const resolved = resolveMiddleware(adapter, options, also);
  const { attributes, cost, priority, isExempt, isFailure, addresses } = resolved;
  const single = isLimiter(choice) ? choice : null;
  const source = single === null ? sourceOf(choice) : null;
  const ready = new WeakSet<Limiter>();
  let sourceReady = source?.ready === undefined;
  if (single !== null) {
    checkAttributes(single, options);
    single.expectCompletions();
  }

  /** Null: nothing to decide. */
  function begin(facts: Facts<Req>, carrier: object): Visit | null {
    if (single !== null) return beginVisit(carrier, single, isFailure, facts);
    const found = source!.match(facts);
    if (found === null) return null;
    facts.matched = found.route ?? null;
    return beginVisit(carrier, found.limiter, isFailure, facts);
  }

  function take(limiter: Limiter, facts: Facts<Req>, req: Req): Promise<TakeDecision> {
    const given = attributes?.(req) ?? NO_ATTRIBUTES;
    if (!isPromise(given)) return takeFor(limiter, facts, req, given);
    return given.then((late) => takeFor(limiter, facts, req, late ?? NO_ATTRIBUTES));
  }

  function takeFor(
    limiter: Limiter,
    facts: Facts<Req>,
    req: Req,
    given: Attributes,
  ): Promise<TakeDecision> {
    const subject = limiter.subjectFor(given, facts);
    if (addresses.warning !== null) tell(limiter);
    if (cost === null && priority === null) return limiter.take(subject);
    const wish: TakeOptions = {};
    if (cost !== null) wish.cost = cost(req);
    if (priority !== null) wish.priority = priority(req);
    return limiter.take(subject, wish);
  }

  function tell(limiter: Limiter): void {
    const { code, message } = addresses.warning!;
    addresses.warning = null;
    limiter.warn(code, `limiter ${limiter.name}: ${message}`);
  }

  /** Its adopted template is waited for once, for one deadline at most. */
  function becomeReady(limiter: Limiter): Promise<void> {
    limiter.expectCompletions();
    return limiter.ready().then(() => void ready.add(limiter));
  }

  function takeReady(limiter: Limiter, facts: Facts<Req>, req: Req): Promise<TakeDecision> {
    if (ready.has(limiter)) return take(limiter, facts, req);
    return becomeReady(limiter).then(() => take(limiter, facts, req));
  }

  const enter: Gate<Req>['enter'] = (req, carrier, pass, settle, fail) => {
    let exempt: boolean | undefined;
    try {
      exempt = isExempt?.(req);
    } catch (error) {
      return fail(error);
    }
    // Outside: what the service throws is not for `fail`.
    if (exempt) return pass();
    if (sourceReady) return decide(req, carrier, pass, settle, fail);
    source!.ready!().then(() => {
      sourceReady = true;
      decide(req, carrier, pass, settle, fail);
    }, fail);
  };

  const decide: Gate<Req>['enter'] = (req, carrier, pass, settle, fail) => {
    const facts = new Facts(adapter, req, addresses, resolved.route);
    let visit: Visit | null;
    let taken: Promise<TakeDecision> | null;
    try {
      visit = begin(facts, carrier);
      taken = visit === null ? null : takeReady(visit.limiter, facts, req);
    } catch (error) {
      return fail(error);
    }
    if (visit === null || taken === null) return pass();
    const at = visit;
    taken.then((decision) => {
      if (decision.delayMs > 0) after(decision.delayMs, () => settle(at, decision));
      else settle(at, decision);
    }, fail);
  };

  return { legacyHeaders: resolved.legacyHeaders, enter };
}

/** A body may have to be awaited; a promise taken for attributes would hold none of them. */
function isPromise(given: Attributes | Promise<Attributes>): given is Promise<Attributes> {
  return typeof (given as Partial<Promise<Attributes>>).then === 'function';
}

function isLimiter(choice: unknown): choice is Limiter {
  return typeof (choice as Partial<Limiter> | null)?.take === 'function';
}

function sourceOf(choice: unknown): LimiterSource {
  if (typeof choice === 'function') {
    return {
      match(request) {
        const limiter = choice(request) as unknown;
        if (limiter === null) return null;
        if (isLimiter(limiter)) return { limiter };
        throw noLimiter('what the function gave', limiter, 'a limiter, or null to let it pass');
      },
    };
  }
  if (typeof (choice as Partial<LimiterSource> | null)?.match === 'function') {
    return choice as LimiterSource;
  }
  throw noLimiter(
    'the limiter',
    choice,
    'what createLimiter or createRoutes made, or a function that chooses one',
  );
}

function noLimiter(what: string, value: unknown, allowed: string): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `${what} is ${show(value)}. Give ${allowed}.`,
  );
}

/** A fault that is known before the first request. */
function checkAttributes<Req>(limiter: Limiter, options: MiddlewareOptions<Req>): void {
  const needed = limiter.attributes.filter((name) => name !== 'route');
  if (needed.length === 0 || options.attributes !== undefined) return;
  throw new FlyballTypeError(
    'FLYBALL_E_ENFORCE_ATTRIBUTES',
    `limiter ${limiter.name}: its subject needs ${needed.join(', ')}, but no attributes function was given. Pass attributes: (req) => ({ ${needed.join(', ')} }).`,
  );
}
