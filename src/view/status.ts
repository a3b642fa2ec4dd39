/** What `status` says of a limiter, as plain data: what is in force, what binds, who holds it, who watches it. Pure. Stage: cli, api. */
import type { Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type Effective, effective } from '../redis/effective.js';
import type { LimiterState, Mode, Params } from '../redis/params.js';
import { parseWindows } from '../redis/windows.js';
import type { LimiterStatus } from '../report/status.js';
import { type CanaryView, canaryView } from './status-canary.js';
import type { StatusFacts } from './status-facts.js';
import { type LoopView, loopView } from './status-loop.js';
import { type RolloutView, rolloutView, routesOf } from './status-reach.js';
import { missingSignals, type WorstSignal, worstSignal } from './status-signals.js';
import type { Traffic } from './traffic.js';

export type Binding = 'rate' | 'cap' | 'subject' | 'breaker' | 'reserve' | 'nothing' | 'unknown';

export interface HoldView {
  /** `bounds`: a person's bounds in place of the policy's; the law moves within. */
  kind: 'pinned' | 'frozen' | 'open' | 'bounds';
  by: string;
  /** Redis ms; null = until a person ends it. */
  untilMs: number | null;
  leftMs: number | null;
  breakerHeld: boolean;
}

export interface Numbers {
  rate: number;
  capacity: number;
  /** null = no cap. */
  inFlightMax: number | null;
}

/** The JSON of `flyball status --json`; additive only. */
export interface StatusView {
  limiter: string;
  group: string | null;
  /** false: no params in Redis; services use the numbers in their code. */
  managed: boolean;
  mode: Mode | null;
  state: LimiterState | null;
  epoch: number | null;
  revision: number | null;
  policyHash: string | null;
  /** Where the daemon's policy file stands to the adopted one, and what is wrong with its files. */
  file: LimiterStatus['file'] | null;
  faults: string[];
  law: string | null;
  /** How far Redis's clock is ahead of the daemon's and of the service furthest off, ms; null: nobody has measured. */
  clocks: NonNullable<LimiterStatus['clocks']> | null;
  /** How the service answers to the law's own changes; null: another law, or nobody decides. */
  loop: LoopView | null;
  inForce: Numbers | null;
  /** As stored: what comes back when the breaker closes. */
  target: Numbers | null;
  bounds: { rate: Range; capacity: Range; inFlight: Range | null } | null;
  binds: Binding;
  traffic: Traffic;
  worst: WorstSignal | null;
  missing: { signal: string; reason: string }[];
  holds: HoldView[];
  /** For whom it is enforced; null: for all. The others are in shadow. */
  rollout: RolloutView | null;
  /** A version that is tried on a part of the subjects, or how that ended; null: none. */
  canary: CanaryView | null;
  /** As the adopted policy names them. */
  routes: string[];
  /** The profile of the policy's schedule that holds; null: none. */
  profile: { name: string; fromMs: number; untilMs: number } | null;
  openUntilMs: number | null;
  daemon: {
    /** Its last heartbeat still counts. */
    alive: boolean;
    owner: string | null;
    lastTickAgeMs: number | null;
    heartbeatLeftMs: number;
  };
  gliding: boolean;
  safe: { rate: number; inFlightMax: number | null } | null;
  /** A sentence when only the rate can be enforced for some or all processes. */
  rateOnly: string | null;
  /** In recommend and shadow: what the law would have set. */
  wouldBe: (Numbers & { state: LimiterState }) | null;
  lastChange: {
    revision: number;
    atMs: number;
    actor: string;
    reason: string;
    sentence: string;
  } | null;
}

type Range = [number, number];

export function statusView(facts: StatusFacts): StatusView {
  const { params, nowMs, address, newest } = facts;
  const traffic = params?.mode === 'shadow' ? asDenied(facts.traffic) : facts.traffic;
  const sample = sampleOf(facts.status);
  const now = params && effective(params, nowMs);
  const body = newest?.body;
  return {
    limiter: address.name,
    group: address.group ?? null,
    managed: params !== null,
    mode: params?.mode ?? null,
    state: now?.state ?? null,
    epoch: params?.epoch ?? null,
    revision: params?.revision ?? null,
    policyHash: params?.policyHash ?? null,
    file: facts.status?.file ?? null,
    faults: facts.status?.faults ?? [],
    law: facts.status?.law ?? null,
    clocks: facts.status?.clocks ?? null,
    loop: loopView(facts.status),
    inForce: now && numbers(now),
    target: params && numbers(params),
    bounds: params && bounds(params),
    binds: binds(params, now, traffic),
    traffic,
    worst: worstSignal(facts.policy, sample),
    missing: missingSignals(facts.policy, sample),
    holds: params ? holdsOf(params, nowMs) : [],
    rollout: params && rolloutView(params),
    canary: params && canaryView(params, nowMs),
    routes: routesOf(params),
    profile: params && (parseWindows(params.windows).profile ?? null),
    openUntilMs: params && now?.state === 'open' ? params.openUntil : null,
    daemon: {
      alive: params !== null && params.validUntil > nowMs,
      owner: facts.owner,
      lastTickAgeMs: tickAge(facts.status, nowMs),
      heartbeatLeftMs: Math.max(0, Math.round((params?.validUntil ?? 0) - nowMs)),
    },
    gliding: now?.gliding ?? false,
    safe: params && { rate: params.safeRate, inFlightMax: params.safeInFlight || null },
    rateOnly: rateOnly(params, facts.policy, traffic),
    wouldBe: wouldBe(facts),
    lastChange:
      newest && body
        ? {
            revision: newest.revision,
            atMs: body.atMs,
            actor: String(body.actor?.name ?? '?'),
            reason: String(body.reason),
            sentence: String(body.sentence),
          }
        : null,
  };
}

/** What turns requests away this moment; the state first, since an open breaker denies all. */
export function binds(params: Params | null, now: Effective | null, traffic: Traffic): Binding {
  if (params?.mode === 'off') return 'nothing';
  if (now?.state === 'open' || now?.state === 'half-open') return 'breaker';
  const by = traffic.deniedPerSecond;
  const candidates: [Binding, number][] = [
    ['cap', by.in_flight ?? 0],
    ['rate', (by.rate ?? 0) + (by.fair_share ?? 0) + (by.cost_exceeds_capacity ?? 0)],
    ['subject', by.subject ?? 0],
    ['reserve', by.reserve ?? 0],
    ['breaker', (by.breaker_open ?? 0) + (by.probe_budget ?? 0)],
  ];
  const [most] = candidates.sort((a, b) => b[1] - a[1]);
  if (most && most[1] > 0) return most[0];
  return traffic.seen ? 'nothing' : 'unknown';
}

/** In shadow nothing is denied: what would be says what binds. */
function asDenied(traffic: Traffic): Traffic {
  return { ...traffic, deniedPerSecond: traffic.wouldDenyPerSecond };
}

function numbers(n: { rate: number; capacity: number; inFlightMax: number }): Numbers {
  return { rate: n.rate, capacity: n.capacity, inFlightMax: n.inFlightMax || null };
}

function bounds(p: Params): NonNullable<StatusView['bounds']> {
  return {
    rate: [p.minRate, p.maxRate],
    capacity: [p.minCapacity, p.maxCapacity],
    inFlight: p.maxInFlight > 0 ? [p.minInFlight, p.maxInFlight] : null,
  };
}

/** Those of people; a pin leads. */
export function holdsOf(p: Params, nowMs: number): HoldView[] {
  const out: HoldView[] = [];
  const add = (kind: HoldView['kind'], untilMs: number, by: string) => {
    if (untilMs !== -1 && untilMs <= nowMs) return;
    const forever = untilMs === -1;
    out.push({
      kind,
      by,
      untilMs: forever ? null : untilMs,
      leftMs: forever ? null : untilMs - nowMs,
      breakerHeld: kind !== 'bounds' && p.holdBreaker === 1,
    });
  };
  add('pinned', p.pinnedUntil, p.heldBy);
  add('frozen', p.frozenUntil, p.heldBy);
  // An open time that runs out by itself is no hold.
  if (p.state === 'open' && p.openUntil === -1) add('open', -1, p.heldBy);
  const { bounds } = parseWindows(p.windows);
  if (bounds !== undefined) add('bounds', bounds.untilMs, bounds.by);
  return out;
}

function rateOnly(params: Params | null, policy: Policy | null, traffic: Traffic): string | null {
  if (params === null || params.inFlightMax === 0) return null;
  if (policy?.limiter.completions === 'none') return 'rate only: the policy says completions: none';
  const silent = traffic.processes - traffic.reporting;
  if (silent <= 0) return null;
  return `rate only: ${silent} of ${traffic.processes} SDK processes report no completions`;
}

function sampleOf(status: StatusFacts['status']): Sample | null {
  const sample = status?.sample;
  return typeof sample?.signals === 'object' && sample.signals !== null ? sample : null;
}

function tickAge(status: StatusFacts['status'], nowMs: number): number | null {
  const atMs = status?.atMs;
  return typeof atMs === 'number' ? Math.max(0, Math.round(nowMs - atMs)) : null;
}

function wouldBe({ params, status }: StatusFacts): StatusView['wouldBe'] {
  if (params?.mode !== 'recommend' && params?.mode !== 'shadow') return null;
  const given = status?.wouldBe;
  return given && Number.isFinite(given.rate) ? { state: given.state, ...numbers(given) } : null;
}
