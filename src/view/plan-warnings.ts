/** What a person should know before they adopt a policy: what moves at once, what begins anew, what no longer fits. Pure. Stage: cli, api. */
import { short } from '../actuate/verbs/plan.js';
import { downstreamWarnings } from '../policy/downstream.js';
import type { Policy } from '../policy/schema.js';
import { upstreamWarnings } from '../policy/upstream.js';
import { parseCanary } from '../redis/canary.js';
import type { ParamChange, Params } from '../redis/params.js';

/** Of all policies together, as they would be. */
export function groupWarnings(policies: readonly Policy[]): string[] {
  return [...downstreamWarnings(policies), ...upstreamWarnings(policies)];
}

/** Of one limiter: `before` is the adopted policy, null when it cannot be read. */
export function limiterWarnings(
  before: Policy | null,
  after: Policy,
  params: Params,
  change: ParamChange,
): string[] {
  const told: string[] = [];
  const { rate = params.rate, inFlightMax = params.inFlightMax, mode = params.mode } = change;
  if (mode === 'auto' && params.mode !== 'auto') {
    told.push(
      `mode ${params.mode} → auto: the law moves the numbers by itself from now on. flyball promote shows the evidence first.`,
    );
  }
  const enforces = (one: string) => one === 'recommend' || one === 'auto';
  if (enforces(mode) && !enforces(params.mode)) {
    told.push(
      `mode ${params.mode} → ${mode}: requests are denied from now on; until now none was.`,
    );
  }
  if (!enforces(mode) && enforces(params.mode)) {
    told.push(`mode ${params.mode} → ${mode}: nothing is denied any more.`);
  }
  const { maxRate = params.maxRate, maxInFlight = params.maxInFlight, minRate = 0 } = change;
  if (params.rate > maxRate) {
    told.push(
      `bounds.rate.max ${short(maxRate)} lies below the ${short(params.rate)}/s in force: it is lowered at once.`,
    );
  }
  if (maxInFlight > 0 && params.inFlightMax > maxInFlight) {
    told.push(
      `bounds.inFlight.max ${maxInFlight} lies below the cap of ${params.inFlightMax} in force: it is lowered at once.`,
    );
  }
  if (mode === 'auto' && rate > params.rate) {
    told.push(
      `bounds.rate.min ${short(minRate)} lies above the ${short(params.rate)}/s in force: it is raised at once.`,
    );
  }
  if (params.inFlightMax > 0 && inFlightMax === 0) {
    told.push('the in-flight cap goes away: only the rate is enforced.');
  }
  const tried = parseCanary(params.canary);
  if (tried !== null && tried.ended === undefined) {
    told.push(`the canary of policy ${tried.policy.slice(0, 12)} goes on: adopting ends it.`);
  }
  if (after.canary !== undefined) {
    told.push(
      'who applies it adopts at once for all; a daemon that reads its file tries it on a part first, as does who asks for a canary.',
    );
  }
  if (before === null) return told;
  if (before.breaker !== undefined && after.breaker === undefined) {
    told.push('the breaker goes away: nothing trips by itself any more.');
  }
  if (change.algorithm !== undefined && change.algorithm !== params.algorithm) {
    told.push(
      'another algorithm counts in keys of its own: what was taken until now is forgotten.',
    );
  }
  if (before.limiter.perSubject?.subject !== after.limiter.perSubject?.subject) {
    told.push('the subjects are others: each begins with a full bucket.');
  }
  return told;
}
