/** What the lease's holder does each tick with the estimates: repair, decide, write or beat, tell. Stage: daemon. */
import type { LoadedPolicy } from '../actuate/adopt.js';
import type { Lease } from '../actuate/lease.js';
import { recommendedLead } from '../actuate/recommended.js';
import { missingSignals } from '../decide/missing.js';
import { overloadOf } from '../decide/overload.js';
import { createDecideState } from '../decide/state.js';
import type { DecideState, Decision, Sample } from '../decide/types.js';
import type { Estimates } from '../estimate/estimate.js';
import { parseCanary } from '../redis/canary.js';
import type { Params } from '../redis/params.js';
import { reportDecision, reportSample } from '../report/tick-metrics.js';
import { detailsOf, type Readings } from '../sense/readings.js';
import { checkpointText, readCheckpoint } from './checkpoint.js';
import { CLOCK_SKEW, type ClockHold, heldDecision, heldSentence } from './clock-hold.js';
import { createEvictionNote } from './eviction-note.js';
import type { FailoverMemory } from './failover.js';
import { turnWithin } from './fleet-budget.js';
import { createGroupShare } from './group-share.js';
import type { History } from './history.js';
import { createLimiterAlerts } from './limiter-alerts.js';
import type { LimiterDeps } from './managed-limiter.js';
import { createPutRight, policyNow } from './put-right.js';
import { createRetune } from './retune.js';
import { lawName, tellStatus } from './tell-status.js';
import { createUpstreamBreaker } from './upstream-breaker.js';
import { inForceView, type StateSince } from './view.js';
import {
  markNoted,
  moveWouldBe,
  noteDue,
  startWouldBe,
  type WouldBe,
  wouldBeValues,
  wouldBeView,
} from './would-be.js';
import { changeOf, type createWriter } from './writer.js';

/** What a turn has seen. */
export interface Sensed {
  estimates: Estimates;
  readings: Readings;
}

export type Leader = ReturnType<typeof createLeader>;

export function createLeader(
  deps: LimiterDeps & {
    writer: ReturnType<typeof createWriter>;
    lease: Lease;
    history: History;
    clockHold: ClockHold;
  },
) {
  const { redis, address, metrics, writer, history, clockHold } = deps;
  const limiter = address.name;
  const groupShare = createGroupShare(deps);
  const upstreamBreaker = createUpstreamBreaker(deps);
  const putRight = createPutRight(deps);
  const alerts = createLimiterAlerts(deps);
  const evictionNote = createEvictionNote(deps);
  const retune = createRetune({ redis, address, writer, log: deps.log });
  let decide: DecideState | null = null;
  let since: StateSince | null = null;
  let wouldBe: WouldBe | null = null;
  /** True until the first decision after taking over: what this daemon has not seen proves nothing. */
  let first = true;
  let heldFor: string | null = null;
  let policyHash: string | undefined;
  /** Since the checkpoint another policy was adopted: the next decision knows. */
  let news = false;

  /** Goes on from the checkpoint of the last owner, or of this daemon before the policy changed. */
  async function takeOver(adopted: LoadedPolicy | null): Promise<void> {
    first = true;
    decide = null;
    alerts.takeOver();
    if (adopted === null) return;
    const checkpoint = await readCheckpoint(redis, address, adopted.policy);
    decide = checkpoint.decide;
    policyHash = adopted.hash;
    news = checkpoint.policy !== undefined && checkpoint.policy !== adopted.hash;
    since = checkpoint.since;
    wouldBe = checkpoint.wouldBe;
    putRight.takeOver(checkpoint.failover);
  }

  async function lead(
    adopted: LoadedPolicy,
    params: Params,
    nowUs: number,
    { estimates, readings }: Sensed,
    dtMs: number,
    last: Params | null,
  ): Promise<void> {
    const { policy, profile, bounds } = policyNow(adopted.policy, params);
    const nowMs = nowUs / 1000;
    const inForce = inForceView(params, nowMs, since);
    since = inForce.since;
    const at = { adopted, policy, params, view: inForce.view, nowUs, last, checkpoint };
    if (await putRight.act(at)) return;
    await holdForClocks(params);
    await evictionNote.act(params, nowMs);
    // At once, not only with the next job: a run may have been overdue for as long as nobody led.
    if (first) void retune.ask(adopted);
    const tunes = heldFor === null && profile === undefined && bounds === undefined;
    if (tunes && (await retune.act(adopted, params, inForce.view, nowMs))) return;
    if (params.mode === 'auto') wouldBe = null;
    else if (wouldBe?.policyHash !== params.policyHash) wouldBe = startWouldBe(params, nowMs);
    let view = inForce.view;
    if (wouldBe !== null) ({ view, wouldBe } = wouldBeView(wouldBe, params, view, nowMs));

    const before = decide ?? createDecideState(policy);
    const sample: Sample = {
      nowMs: Math.floor(nowMs),
      dtMs: Math.round(dtMs * 1000) / 1000,
      ...estimates,
      inForce: view,
    };
    if (policy.bounds?.reserve !== undefined && params.mode === 'auto') {
      const reserve = { default: params.reserveDefault, sheddable: params.reserveSheddable };
      sample.inForce = { ...view, target: { ...view.target, reserve } };
    }
    const group = await groupShare.read(policy, inForce.view, estimates.traffic, nowMs);
    if (group !== undefined) sample.group = group;
    if (profile !== undefined) sample.profile = profile;
    if (bounds !== undefined) sample.bounds = bounds;
    if (news) sample.adopted = true;
    const ceiling = putRight.ceiling(nowMs);
    if (ceiling !== undefined) sample.ceiling = ceiling;
    const upstream = await upstreamBreaker.read(policy, nowMs);
    if (upstream !== undefined) sample.upstream = upstream;
    let { state, decision } =
      heldFor === null
        ? await turnWithin(wouldBe === null ? deps.spend : null, adopted.policy, before, sample)
        : { state: before, decision: heldDecision(sample.inForce, heldFor) };
    if (first && raises(decision, sample) && !estimates.traffic.fresh) {
      decision = { ...decision, change: false };
      state = before;
    }
    if (heldFor === null) first = false;

    if (decision.change && wouldBe === null) {
      const written = await writer.change(params, {
        change: changeOf(decision),
        cause: decision.cause,
        reason: decision.reason,
        sentence: decision.sentence,
        after: valuesOf(decision, params),
        checkpoint: textOf(state, putRight.failover),
        ...inputs(policy.control.law, sample, before, decision),
      });
      if (written) decide = state;
    } else {
      decide = state;
      if (wouldBe !== null && decision.change) wouldBe = moveWouldBe(wouldBe, decision, nowMs);
      await noteRecommendation(policy, params, sample, before, decision, nowMs);
      await beat(params);
    }
    if (decide === state && state !== before) news = false;
    if (wouldBe === null && decide === state) {
      await upstreamBreaker.tell(policy, state.memory.breaker, decision, params, nowMs);
    }
    reportSample(metrics, limiter, sample);
    reportDecision(metrics, limiter, decision);
    const { z, fresh } = overloadOf(policy, sample);
    const file = deps.fileState(adopted.hash, parseCanary(params.canary)?.policy);
    history.watch({
      ...{ nowMs, dtMs, inForce: inForce.view, overload: fresh && z > 0 },
      drift: file.file === 'drift',
      fresh: missingSignals(policy, sample).missing.length === 0,
    });
    const details = detailsOf(readings);
    await tellStatus(deps, { adopted, params, sample, decision, wouldBe, details, file });
    const now = { ...sample, inForce: inForce.view };
    alerts.see({ policy, params, sample: now, decision, readings, details });
  }

  /** Clocks minutes apart: the law rests, the limits stay, and the log of the limiter says why, once. */
  async function holdForClocks(params: Params): Promise<void> {
    const before = heldFor;
    heldFor = clockHold.reason();
    if (heldFor === null || before !== null) return;
    await writer.note(params, { reason: CLOCK_SKEW, sentence: heldSentence(heldFor) });
  }

  /** A beat that comes after the glide has begun is refused: the next turn sees the glide and settles it. */
  async function beat(params: Params): Promise<void> {
    if (decide === null) return;
    await writer.beat(params, checkpoint(putRight.failover) ?? '');
  }

  function checkpoint(failover: FailoverMemory | null): string | undefined {
    return decide === null ? undefined : textOf(decide, failover);
  }

  function textOf(state: DecideState, failover: FailoverMemory | null): string {
    return checkpointText({ decide: state, policy: policyHash, since, wouldBe, failover });
  }

  async function noteRecommendation(
    policy: LoadedPolicy['policy'],
    params: Params,
    sample: Sample,
    before: DecideState,
    decision: Decision,
    nowMs: number,
  ): Promise<void> {
    if (wouldBe === null) return;
    metrics.wouldBeRate.set({ limiter }, wouldBe.rate);
    metrics.wouldBeCap.set({ limiter }, wouldBe.inFlightMax);
    if (!decision.change || !noteDue(wouldBe, policy.guards.deadBand, nowMs)) return;
    const { mode, state, rate, capacity, inFlightMax } = params;
    await writer.note(params, {
      reason: decision.reason,
      sentence: `${recommendedLead(params.mode)}${decision.sentence}`,
      before: { mode, state, rate, capacity, inFlightMax },
      after: wouldBeValues(wouldBe, params),
      ...inputs(policy.control.law, sample, before, decision),
    });
    wouldBe = markNoted(wouldBe, nowMs);
  }

  return { takeOver, lead, restored: putRight.restored, runJobs: retune.ask };
}

/** All that `explain` needs to take the same decision again; and what its sentence says, for who counts. */
function inputs(law: string, sample: Sample, stateBefore: DecideState, decision: Decision) {
  const { verdicts, terms, over, heldBack } = decision;
  const said = over !== undefined || heldBack !== undefined;
  const detail = said ? { detail: { over, heldBack } } : {};
  return { law: lawName(law), sample, stateBefore, verdicts, terms, ...detail };
}

function valuesOf(decision: Decision, params: Params) {
  const { state, rate, capacity, inFlightMax, reserve } = decision;
  const values = { mode: params.mode, state, rate, capacity, inFlightMax };
  return reserve === undefined ? values : { ...values, reserve };
}

function raises(decision: Decision, sample: Sample): boolean {
  const { target } = sample.inForce;
  return (
    decision.change && (decision.rate > target.rate || decision.inFlightMax > target.inFlightMax)
  );
}
