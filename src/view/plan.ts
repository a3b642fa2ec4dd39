/** What adopting policies would change: adopted → desired for each limiter, who owns each number, drift, warnings. Stage: cli, api. */
import { type RedisClient, readParamsAnyhow } from '../actuate/actuator.js';
import { type LoadedPolicy, policyAddress } from '../actuate/adopt.js';
import { adoptedParams, createdParams } from '../actuate/adopted-params.js';
import { readEntries } from '../actuate/audit.js';
import type { AdoptStep } from '../actuate/verbs/adopt-all.js';
import { readPolicy } from '../actuate/verbs/apply.js';
import { type Stood, stoodOf } from '../actuate/verbs/stood.js';
import { type FieldChange, policyDiff } from '../policy/plan.js';
import type { Policy } from '../policy/schema.js';
import { isCanaryName } from '../redis/canary.js';
import { fleetKeys, type LimiterAddress } from '../redis/keys.js';
import type { Mode, ParamChange, Params } from '../redis/params.js';
import { listLimiters, type Session } from './limiters.js';
import {
  type Drift,
  driftOf,
  NOBODY,
  NUMBERS,
  type NumberName,
  type Owned,
  ownersOf,
  POLICY,
} from './plan-owners.js';
import { groupWarnings, limiterWarnings } from './plan-warnings.js';

/**
 * `mend`: the policy is adopted, but what is in force has drifted from it. `orphan`: no file of those given; its adopted
 * policy stays. `refuse`: it cannot be adopted, `sentence` says why.
 */
export type PlanAction = 'create' | 'change' | 'mend' | 'unchanged' | 'orphan' | 'refuse';

export interface PlannedNumber extends Owned {
  name: NumberName;
  /** 0 of the cap: none. */
  inForce: number | null;
  /** As adopting would put it in force; null: nothing is adopted. */
  planned: number | null;
}

export interface LimiterPlan {
  limiter: string;
  group: string | null;
  file: string | null;
  action: PlanAction;
  epoch: number | null;
  revision: number | null;
  /** Hashes. */
  adopted: string | null;
  desired: string | null;
  mode: ({ inForce: Mode | null; planned: Mode | null } & Owned) | null;
  numbers: PlannedNumber[];
  rollout: ({ inForce: string; planned: string } & Owned) | null;
  /** Of the policy. */
  fields: FieldChange[];
  drift: Drift[];
  warnings: string[];
  /** What the audit entry would say; or why it is refused. */
  sentence: string | null;
  /** What it stands on: `apply` refuses when that has moved. null: the limiter has no params. */
  stood: Stood | null;
}

export interface PlanView {
  redis: string;
  /** Redis ms; 0: nothing was read. */
  atMs: number;
  limiters: LimiterPlan[];
  counts: Record<PlanAction, number>;
  /** Of several limiters together. */
  warnings: string[];
}

/** So many entries are looked through for who set a number. */
const ENTRIES = 200;

/** Reads only. `person` is who would adopt; `orphans`: tell of limiters without a file, too. */
export async function planView(
  session: Session,
  loaded: readonly LoadedPolicy[],
  person: string,
  orphans: boolean,
): Promise<PlanView> {
  const known = orphans ? await listLimiters(session) : [];
  const given = new Set(loaded.map(({ policy }) => policy.limiter.name));
  const limiters: LimiterPlan[] = [];
  const together: Policy[] = loaded.map(({ policy }) => policy);
  let atMs = 0;
  for (const one of loaded) {
    const planned = await planOne(session, one, person);
    limiters.push(planned.plan);
    atMs = planned.atMs;
  }
  for (const address of known) {
    if (given.has(address.name) || isCanaryName(address.name)) continue;
    const { plan, policy } = await planOrphan(session.redis, address);
    limiters.push(plan);
    if (policy !== null) together.push(policy);
  }
  limiters.sort((a, b) => (a.limiter < b.limiter ? -1 : 1));
  const counts = { create: 0, change: 0, mend: 0, unchanged: 0, orphan: 0, refuse: 0 };
  for (const { action } of limiters) counts[action] += 1;
  return { redis: session.url, atMs, limiters, counts, warnings: groupWarnings(together) };
}

const ADOPTS: readonly PlanAction[] = ['create', 'change', 'mend'];

/** Those that adopting would change. */
export function stepsOf(
  limiters: readonly LimiterPlan[],
  loaded: readonly LoadedPolicy[],
): AdoptStep[] {
  return limiters
    .filter(({ action }) => ADOPTS.includes(action))
    .map(({ limiter, action, stood }) => ({
      loaded: loaded.find(({ policy }) => policy.limiter.name === limiter)!,
      stood,
      mends: action === 'mend',
    }));
}

const NONE = { mode: null, numbers: [], rollout: null, fields: [], drift: [], warnings: [] };

async function planOne(
  { redis, prefix }: Session,
  loaded: LoadedPolicy,
  person: string,
): Promise<{ plan: LimiterPlan; atMs: number }> {
  const { policy, file, hash: desired } = loaded;
  const address = policyAddress(policy, prefix);
  const of = { limiter: address.name, group: address.group ?? null, file, desired };
  const registered = await redis.hget(fleetKeys(prefix).limiters, address.name);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  const atMs = Math.floor(nowUs / 1000);
  const nothing = { ...NONE, epoch: null, revision: null, adopted: null, stood: null };
  if (registered !== null && registered !== (address.group ?? '')) {
    const said = (group: string) => (group === '' ? 'no group' : `group ${group}`);
    const sentence = `limiter.group is ${said(address.group ?? '')}, but it lives in ${said(registered)}: give it a new name, or keep the group`;
    return { plan: { ...of, ...nothing, action: 'refuse', sentence }, atMs };
  }
  if (params === null) {
    const { change, sentence } = createdParams(loaded, null, atMs);
    const plan: LimiterPlan = { ...of, ...nothing, action: 'create', sentence };
    plan.numbers = NUMBERS.map((name) => {
      return { name, inForce: null, planned: change[name] ?? null, ...POLICY };
    });
    plan.mode = { inForce: null, planned: change.mode ?? null, ...POLICY };
    return { plan, atMs };
  }
  const before = await readPolicy(redis, address);
  const changes = params.policyHash !== desired;
  const { change, sentence } = adoptedParams(loaded, params, atMs, person);
  const now = await standsNow(redis, address, before, params, atMs, changes ? change : {});
  const mends = !changes && now.drift.length > 0;
  const plan: LimiterPlan = {
    ...of,
    ...now,
    action: changes ? 'change' : mends ? 'mend' : 'unchanged',
    fields: before === null ? [] : policyDiff(before, policy),
    warnings: changes ? limiterWarnings(before, policy, params, change) : [],
    sentence: changes ? sentence : mends ? 'what has drifted is put right' : null,
  };
  if (before === null)
    plan.warnings.push('the adopted policy cannot be read: what differs from it is not known.');
  return { plan, atMs };
}

async function planOrphan(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<{ plan: LimiterPlan; policy: Policy | null }> {
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  const { name: limiter, group = null } = address;
  const of = { ...NONE, limiter, group, file: null, desired: null, action: 'orphan' as const };
  const sentence = 'no file of those given: its adopted policy stays';
  const nothing = { epoch: null, revision: null, adopted: null, stood: null };
  if (params === null) return { plan: { ...of, ...nothing, sentence }, policy: null };
  const policy = await readPolicy(redis, address);
  const now = await standsNow(redis, address, policy, params, nowUs / 1000, {});
  return { plan: { ...of, ...now, sentence }, policy };
}

/** What is in force, who owns it, and what `change` makes of it. */
async function standsNow(
  redis: RedisClient,
  address: LimiterAddress,
  policy: Policy | null,
  params: Params,
  nowMs: number,
  change: ParamChange,
) {
  const { entries } = await readEntries(redis, address, { kind: 'change', limit: ENTRIES });
  const of = policy === null ? null : { policy, params, nowMs, entries };
  const owners = of === null ? null : ownersOf(of);
  const { epoch, revision, policyHash: adopted } = params;
  const { mode = params.mode, rollout = params.rollout } = change;
  return {
    ...{ epoch, revision, adopted, stood: stoodOf(params, nowMs) },
    mode: { inForce: params.mode, planned: mode, ...(owners?.mode ?? NOBODY) },
    numbers: NUMBERS.map((name) => {
      const planned = change[name] ?? params[name];
      return { name, inForce: params[name], planned, ...(owners?.[name] ?? NOBODY) };
    }),
    rollout: { inForce: params.rollout, planned: rollout, ...(owners?.rollout ?? NOBODY) },
    drift: of === null ? [] : driftOf(of),
  };
}
