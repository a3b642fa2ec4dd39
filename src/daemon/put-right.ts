/** What comes before the law at each turn: a failover, a window that begins or ends, a repair; one write of them. Stage: daemon. */
import type { LoadedPolicy } from '../actuate/adopt.js';
import { restingNumbers } from '../actuate/person-policy.js';
import type { InForceView } from '../decide/types.js';
import { inWindows } from '../policy/person-bounds.js';
import type { Policy } from '../policy/schema.js';
import type { Params } from '../redis/params.js';
import { type PersonBounds, parseWindows } from '../redis/windows.js';
import { type FailoverMemory, failoverStep } from './failover.js';
import type { LimiterDeps } from './managed-limiter.js';
import { dueRepair, type Repair } from './repairs.js';
import { windowChange } from './windows.js';
import type { createWriter } from './writer.js';

/** The policy as it holds now, and what makes it so: the name of a profile, a person's bounds. */
export interface PolicyNow {
  policy: Policy;
  profile: string | undefined;
  bounds: PersonBounds | undefined;
}

export interface PutRight {
  /** Goes on from what the last owner left. */
  takeOver(memory: FailoverMemory | null): void;
  /** Redis had lost the params, and this daemon created them anew. */
  restored(): Promise<void>;
  /** True: something was due, and the turn is over. */
  act(turn: {
    adopted: LoadedPolicy;
    /** As what holds now makes it. */
    policy: Policy;
    params: Params;
    view: InForceView;
    nowUs: number;
    last: Params | null;
    checkpoint: (failover: FailoverMemory | null) => string | undefined;
  }): Promise<boolean>;
  /** For the checkpoint. */
  readonly failover: FailoverMemory | null;
  /** The most that the rate may be for now; undefined: as much as the bounds allow. */
  ceiling(nowMs: number): number | undefined;
}

/** As the params say, not the clock: bounds in Redis and in the law are then the same. */
export function policyNow(policy: Policy, params: Params): PolicyNow {
  const windows = parseWindows(params.windows);
  const { rate, inFlight } = windows.bounds ?? {};
  return {
    policy: inWindows(policy, windows),
    profile: windows.profile?.name,
    bounds: windows.bounds && { ...(rate && { rate }), ...(inFlight && { inFlight }) },
  };
}

export function createPutRight(
  deps: LimiterDeps & { writer: ReturnType<typeof createWriter> },
): PutRight {
  const { address, metrics, writer, servers } = deps;
  const limiter = address.name;
  let failover: FailoverMemory | null = null;
  let created = false;

  return {
    takeOver(memory) {
      failover = memory;
    },
    async restored() {
      created = true;
      await servers.look();
    },
    async act({ adopted, policy, params, view, nowUs, last, checkpoint }) {
      const nowMs = nowUs / 1000;
      const step = failoverStep({
        ...{ policy, params, view, nowMs, last, servers, memory: failover },
        ...{ server: servers.serving(address), restored: created },
      });
      created = false;
      if (step.repair === null) failover = step.memory;
      const repair: Repair | null =
        step.repair ??
        windowChange(adopted, params, nowMs) ??
        dueRepair(policy, params, view, nowUs, restingNumbers(adopted.policy, params));
      if (repair === null) return false;
      const after = step.repair === null ? failover : step.memory;
      const text = checkpoint(after);
      // A policy that was lost is stored again with the params that name it.
      const lostPolicy = repair.change.policyHash === adopted.hash;
      const written = await writer.change(params, {
        ...repair,
        ...(text === undefined ? {} : { checkpoint: text }),
        ...(lostPolicy
          ? { policy: { hash: adopted.hash, json: adopted.json }, policyHash: adopted.hash }
          : {}),
      });
      if (!written) return true;
      failover = after;
      if (repair.reason === 'clock_regression') metrics.clockRegressions.inc({ limiter });
      if (step.repair?.newEpoch !== undefined) {
        metrics.failovers.inc({
          limiter,
          writes: repair.reason === 'writes_lost' ? 'lost' : 'kept',
        });
      }
      return true;
    },
    get failover() {
      return failover;
    },
    ceiling(nowMs) {
      const lowered = failover?.lowered;
      return lowered && nowMs < lowered.untilMs ? lowered.to : undefined;
    },
  };
}
