/** A span for each take while OpenTelemetry is there; without it one look at a variable. Stage: enforce → report. */
import { FlyballTypeError } from '../errors.js';
import { VERSION } from '../version.js';
import { show } from './arguments.js';
import { FlyballDeniedError, type TakeDecision } from './decision.js';

type SpanName = 'take' | 'wait' | 'take_all';
type Attribute = string | number | boolean | string[];

/** What of an OpenTelemetry span is used. */
export interface TakeSpan {
  setAttribute(key: string, value: Attribute): unknown;
  recordException(exception: Error): void;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** What of an OpenTelemetry `Tracer` is used: any tracer of its API will do. */
export interface TakeTracer {
  startSpan(name: string, options?: { attributes?: Record<string, Attribute> }): TakeSpan;
}

export interface Tracing {
  /** null: no spans now. */
  readonly tracer: TakeTracer | null;
  /** What `ask` decides, in a span of this limiter if there is a tracer. */
  span<T extends TakeDecision>(name: SpanName, cost: number, ask: () => Promise<T>): Promise<T>;
  /** Once a second: an OpenTelemetry SDK may have been started, or ended. */
  look(): void;
}

/** Where each copy of `@opentelemetry/api` 1.x keeps what an SDK has registered. */
const API = Symbol.for('opentelemetry.js.api.1');
/** `SpanStatusCode.ERROR`. */
const ERROR = 2;

/**
 * `tracer`: your own, or false for none; default: that of the OpenTelemetry SDK which this process has started, found
 * where its API keeps it, so that no copy of the API is loaded for it.
 */
export function createTracing(limiter: string, tracer: TakeTracer | false | undefined): Tracing {
  checkTracer(tracer);
  let known: { provider: unknown; tracer: TakeTracer } | null = null;

  function look(): void {
    if (tracer !== undefined) return;
    const provider = registered();
    if (provider === null) known = null;
    else if (known?.provider !== provider) {
      const found = quietly(() => provider.getTracer('flyball', VERSION));
      known = found ? { provider, tracer: found } : null;
    }
  }
  look();
  const now = () => (tracer === undefined ? (known?.tracer ?? null) : tracer || null);
  return {
    get tracer() {
      return now();
    },
    span(name, cost, ask) {
      const found = now();
      return found === null ? ask() : traced(found, name, { limiter, cost }, ask);
    },
    look,
  };
}

interface Provider {
  getTracer(name: string, version: string): TakeTracer;
}

function registered(): Provider | null {
  const api = (globalThis as { [API]?: { trace?: Partial<Provider> } })[API];
  return typeof api?.trace?.getTracer === 'function' ? (api.trace as Provider) : null;
}

/**
 * One take in a span, of `flyball.take`, `flyball.wait` or `flyball.take_all`. The active span is its parent: the tracer
 * asks the API for it. A denial is an answer, also where it rejects.
 */
export async function traced<T extends TakeDecision>(
  tracer: TakeTracer,
  name: SpanName,
  asked: { limiter: string | string[]; cost?: number },
  take: () => Promise<T>,
): Promise<T> {
  const attributes: Record<string, Attribute> = { 'flyball.limiter': asked.limiter };
  if (asked.cost !== undefined) attributes['flyball.cost'] = asked.cost;
  const span = quietly(() => tracer.startSpan(`flyball.${name}`, { attributes }));
  if (!span) return take();
  try {
    const decision = await take();
    quietly(() => answer(span, decision));
    return decision;
  } catch (error) {
    quietly(() => fault(span, error));
    throw error;
  } finally {
    quietly(() => span.end());
  }
}

/** A tracer that throws costs its span: an admitted take would else hold its place for good. */
function quietly<T>(tell: () => T): T | undefined {
  try {
    return tell();
  } catch {
    return undefined;
  }
}

function fault(span: TakeSpan, error: unknown): void {
  if (error instanceof FlyballDeniedError) {
    answer(span, error.decision);
    return;
  }
  span.recordException(error instanceof Error ? error : new Error(String(error)));
  span.setStatus({ code: ERROR });
}

function answer(span: TakeSpan, decision: TakeDecision): void {
  span.setAttribute('flyball.allowed', decision.allowed);
  span.setAttribute('flyball.reason', decision.reason);
  if (decision.limit !== null) span.setAttribute('flyball.limit', decision.limit);
  span.setAttribute('flyball.source', decision.source);
  span.setAttribute('flyball.revision', decision.revision);
}

function checkTracer(tracer: TakeTracer | false | undefined): void {
  if (tracer === undefined || tracer === false || typeof tracer?.startSpan === 'function') return;
  throw new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `tracer is ${show(tracer)}. Give a Tracer of @opentelemetry/api, false for no spans, or leave it out to use the one that is registered.`,
  );
}
