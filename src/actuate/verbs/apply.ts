/** Carries out a person's verb: read, plan, show, compare-and-set; again when the autopilot moved the revision meanwhile. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import { type Policy, policySchema } from '../../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../../redis/keys.js';
import { readOverrides } from '../../redis/subject-override.js';
import { type RedisClient, readParams, write } from '../actuator.js';
import { withoutLapsed } from '../windowed-params.js';
import type { Facts, Planner, VerbPlan } from './plan.js';

/** How often a person is shown a changed plan before we give up. */
const MAX_PREVIEWS = 10;
/** A person's write takes milliseconds and wins against any writer that pauses; this bounds the other races. */
const CONTEND_MS = 15_000;

export interface ApplyOptions {
  /** Name of a token, else `user@host (unverified)`. */
  actor: string;
  /** The name was proved with a token. */
  verified?: true;
  /** The person's own words, kept in the entry. */
  reason?: string | undefined;
  dryRun: boolean;
  /** Shows the plan and asks; called again only when what would be written has changed since. */
  approve(plan: VerbPlan, facts: Facts): Promise<boolean>;
  /** Called on each reading, also of what was approved: throws where it must not be done. */
  check?(plan: VerbPlan, facts: Facts): void;
  /** Wall time of the entry, ms; asked for when it is written, since a person may take their time. */
  nowMs(): number;
  /** Tests only: Redis time (µs) to use instead of TIME. */
  nowUs?: number;
}

export type VerbOutcome =
  | { status: 'done'; plan: VerbPlan; facts: Facts; epoch: number; revision: number }
  | { status: 'dry-run' | 'declined'; plan: VerbPlan; facts: Facts }
  | { status: 'nothing'; sentence: string };

export async function applyVerb(
  redis: RedisClient,
  address: LimiterAddress,
  planner: Planner,
  options: ApplyOptions,
): Promise<VerbOutcome> {
  let approved: { plan: VerbPlan; facts: Facts } | undefined;
  let previews = 0;
  let giveUpAtMs = Number.POSITIVE_INFINITY;
  while (previews <= MAX_PREVIEWS && performance.now() < giveUpAtMs) {
    const facts = await readFacts(redis, address, options);
    const plan = planner(facts);
    if (plan.kind === 'nothing') return { status: 'nothing', sentence: plan.sentence };
    if (options.dryRun) return { status: 'dry-run', plan, facts };
    options.check?.(plan, facts);
    if (approved === undefined || !stillMeant(approved, plan, facts)) {
      if (!(await options.approve(plan, facts))) return { status: 'declined', plan, facts };
      approved = { plan, facts };
      previews += 1;
      giveUpAtMs = performance.now() + CONTEND_MS;
      // The person took their time: read once more, so that a hold runs from now and stale numbers are not written.
      continue;
    }
    const { params } = facts;
    const reply = await write(
      redis,
      address,
      {
        authority: { kind: 'person' },
        expected: { epoch: params.epoch, revision: params.revision },
        change: plan.change,
        ...(plan.override === undefined ? {} : { override: plan.override }),
        cause: 'person',
        ...(plan.refloor === undefined ? {} : { refloor: plan.refloor }),
        actor: {
          kind: 'person',
          name: options.actor,
          ...(options.verified === undefined ? {} : { verified: options.verified }),
        },
        reason: plan.reason,
        sentence: options.reason ? `${plan.sentence} Reason: ${options.reason}` : plan.sentence,
        before: plan.before,
        after: plan.after,
        policyHash: params.policyHash,
        detail: { ...plan.detail, ...(options.reason ? { why: options.reason } : {}) },
      },
      {
        leaseMs: 0,
        nowMs: options.nowMs(),
        ...(options.nowUs === undefined ? {} : { nowUs: options.nowUs }),
      },
    );
    if (reply.status === 'ok') {
      return { status: 'done', plan, facts, epoch: reply.epoch, revision: reply.revision };
    }
    if (reply.reason !== 'revision' && reply.reason !== 'head') {
      throw new FlyballError(
        'FLYBALL_E_ACTUATE_REFUSED',
        `Redis refused the change of ${address.name} (${reply.reason}): ${reply.detail}. Nothing was written.`,
      );
    }
  }
  throw new FlyballError(
    'FLYBALL_E_ACTUATE_CONTENDED',
    `${address.name} was changed by others again and again while this was being written. Nothing was written; look at \`flyball audit ${address.name}\` and try again.`,
  );
}

export async function readFacts(
  redis: RedisClient,
  address: LimiterAddress,
  options: { actor: string; nowUs?: number },
): Promise<Facts> {
  const { params, nowUs } = await readParams(redis, address);
  if (params === null) {
    throw new FlyballError(
      'FLYBALL_E_LIMITER_UNMANAGED',
      `${address.name} has no params in Redis: services use the numbers in their own code. \`flyball run\` adopts its policy and creates them.`,
    );
  }
  const nowMs = Math.floor((options.nowUs ?? nowUs) / 1000);
  const policy = await readPolicy(redis, address);
  const overrides =
    params.subjectRules === 1 ? await readOverrides(redis, limiterKeys(address)) : null;
  return {
    limiter: address.name,
    params: policy === null ? params : withoutLapsed(policy, params, nowMs),
    ...(overrides === null ? {} : { overrides }),
    nowMs,
    policy,
    actor: options.actor,
  };
}

/** The adopted policy, or null when there is none or another version wrote it. */
export async function readPolicy(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<Policy | null> {
  // MGET: a key of another type reads as none, and must not keep anybody from acting.
  const [text] = await redis.mget(limiterKeys(address).policy);
  if (text === null || text === undefined) return null;
  try {
    const parsed = policySchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** Would the write still do what the person said yes to? Another person's hold made meanwhile is news as well. */
function stillMeant(
  approved: { plan: VerbPlan; facts: Facts },
  plan: VerbPlan,
  facts: Facts,
): boolean {
  const { params: then } = approved.facts;
  const { params: now } = facts;
  return (
    plan.agreed.every((key) => approved.plan.after[key] === plan.after[key]) &&
    approved.plan.override?.before?.revision === plan.override?.before?.revision &&
    approved.plan.basis === plan.basis &&
    then.pinnedUntil === now.pinnedUntil &&
    then.frozenUntil === now.frozenUntil &&
    then.heldBy === now.heldBy
  );
}
