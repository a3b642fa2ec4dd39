/** What the leader leaves in `:status` after each turn. Stage: daemon. */
import type { LoadedPolicy } from '../actuate/adopt.js';
import type { Lease } from '../actuate/lease.js';
import { type Decision, LAW_VERSIONS, type Sample } from '../decide/types.js';
import { limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { type LimiterStatus, statusLivesMs } from '../report/status.js';
import type { ClockHold } from './clock-hold.js';
import type { LimiterDeps } from './managed-limiter.js';
import { type WouldBe, wouldBeValues } from './would-be.js';

export async function tellStatus(
  deps: LimiterDeps & { lease: Lease; clockHold: ClockHold },
  turn: {
    adopted: LoadedPolicy;
    params: Params;
    sample: Sample;
    decision: Decision;
    wouldBe: WouldBe | null;
    details: Record<string, string>;
    /** How the file here stands to the adopted policy. */
    file: ReturnType<LimiterDeps['fileState']>;
  },
): Promise<void> {
  const { redis, address, tickMs, lease, clockHold } = deps;
  const { adopted, params, sample, decision, wouldBe, details, file } = turn;
  const {
    change,
    reason,
    sentence,
    state,
    rate,
    capacity,
    inFlightMax,
    verdicts,
    terms,
    heldBack,
  } = decision;
  const status: LimiterStatus = {
    schema: 1,
    atMs: sample.nowMs,
    tickMs,
    owner: lease.owner,
    fence: lease.token ?? 0,
    epoch: params.epoch,
    revision: params.revision,
    law: lawName(adopted.policy.control.law),
    policyHash: adopted.hash,
    ...file,
    sample,
    details,
    decision: {
      ...{ change, reason, sentence, state, rate, capacity, inFlightMax, verdicts, terms },
      ...(heldBack && { heldBack }),
    },
    wouldBe: wouldBe === null ? null : wouldBeValues(wouldBe, params),
    clocks: { redisMs: deps.clocks.skewMs, servicesMs: clockHold.servicesMs },
  };
  const text = JSON.stringify(status);
  await redis.set(limiterKeys(address).status, text, 'PX', statusLivesMs(tickMs));
  deps.told?.(address.name, status);
}

export function lawName(law: string): string {
  return `${law}@${LAW_VERSIONS[law]}`;
}
