/** All that the dashboard asks of the HTTP API: the one place that knows its routes. Stage: dashboard. */
import type {
  AlertsAnswer,
  ApplyAnswer,
  ApplyRequest,
  AuditAnswer,
  EpisodesAnswer,
  ExplainAnswer,
  FleetAnswer,
  LimiterAnswer,
  PoliciesAnswer,
  PolicyHistoryAnswer,
  Problem,
  SeriesAnswer,
  SeriesWindow,
  SessionAnswer,
  ShownAnswer,
  SignalsAnswer,
  TopAnswer,
  Verb,
  VerbAnswer,
  VerbRequest,
} from '../api/types.js';

const BASE = '/api/v1';
/** No form of another origin can send it: with the cookie it proves that this page asks. */
const OWN_HEADER = { 'x-flyball-request': '1' };
/** A server that accepts and then says nothing must not keep a page waiting. */
const DEADLINE_MS = 15_000;

/** What the API said no to, in its words. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail ?? problem.title ?? `the daemon answered ${status}`);
  }
}

export const api = {
  session: () => get<SessionAnswer>('/session'),
  signIn: (token: string) => send<SessionAnswer>('POST', '/session', { token }),
  signOut: () => send<SessionAnswer | null>('DELETE', '/session'),
  limiter: (name: string) => get<LimiterAnswer>(of(name)),
  signals: (name: string) => get<SignalsAnswer>(`${of(name)}/signals`),
  series: (name: string, window: SeriesWindow) =>
    get<SeriesAnswer>(`${of(name)}/series?window=${window}`),
  audit: (name: string, query: { limit: number; before?: string; kind?: 'change' | 'note' }) =>
    get<AuditAnswer>(`${of(name)}/audit?${queryOf(query)}`),
  explain: (name: string, epoch: number, revision: number) =>
    get<ExplainAnswer>(`${of(name)}/revisions/${revision}/explain?epoch=${epoch}`),
  top: (name: string, by: 'taken' | 'denied') =>
    get<TopAnswer>(`${of(name)}/top?${queryOf({ by, over: '5m', limit: 10 })}`),
  verb: (name: string, verb: Verb, request: VerbRequest) =>
    send<VerbAnswer>('POST', `${of(name)}/${verb}`, request),
  episodes: (query: {
    limit: number;
    before?: string;
    since?: number;
    until?: number;
    limiter?: string;
  }) => {
    const { limiter, ...rest } = query;
    const path = limiter === undefined ? '' : of(limiter);
    return get<EpisodesAnswer>(`${path}/episodes?${queryOf(rest)}`);
  },
  policies: () => get<PoliciesAnswer>('/policies'),
  policyHistory: (name: string) =>
    get<PolicyHistoryAnswer>(`/policies/${encodeURIComponent(name)}/history`),
  apply: (name: string, request: ApplyRequest) =>
    send<ApplyAnswer>('POST', `/policies/${encodeURIComponent(name)}/apply`, request),
  fleet: () => get<FleetAnswer>('/fleet'),
  shown: (limiters: readonly string[]) => send<ShownAnswer>('POST', '/stream/shown', { limiters }),
  alerts: () => get<AlertsAnswer>('/alerts'),
};

/** Where the live events come from; of one limiter, each second, or of all. */
export function streamUrl(limiter: string | null): string {
  return limiter === null
    ? `${BASE}/stream`
    : `${BASE}/stream?limiter=${encodeURIComponent(limiter)}`;
}

function of(name: string): string {
  return `/limiters/${encodeURIComponent(name)}`;
}

function queryOf(query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
}

function get<T>(path: string): Promise<T> {
  return ask<T>(path, {});
}

function send<T>(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  if (body === undefined) return ask<T>(path, { method, headers: OWN_HEADER });
  const headers = { ...OWN_HEADER, 'content-type': 'application/json' };
  return ask<T>(path, { method, headers, body: JSON.stringify(body) });
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const response = await fetch(BASE + path, {
    cache: 'no-store',
    credentials: 'same-origin',
    ...init,
    signal,
  }).catch((error: unknown) => {
    const late = error instanceof DOMException && error.name === 'TimeoutError';
    const detail = late ? 'the daemon did not answer in 15 s' : 'the daemon cannot be reached';
    throw new ApiError(0, { detail });
  });
  if (response.status === 204) return null as T;
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, problemOf(body));
  return body as T;
}

/** A proxy in between answers with a page of its own: then only the status counts. */
function problemOf(body: unknown): Partial<Problem> {
  return typeof body === 'object' && body !== null ? (body as Partial<Problem>) : {};
}
