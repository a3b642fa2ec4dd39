/** Looks after the canary of a limiter that is led here: judges it, adopts what has passed, takes back what has not. Stage: daemon. */
import { adopt, type LoadedPolicy } from '../actuate/adopt.js';
import type { AdoptOptions } from '../actuate/adopt-types.js';
import { readAdopted } from '../actuate/adopted-policy.js';
import { endCanary } from '../actuate/canary.js';
import { canaryAddress, retireCanary } from '../actuate/canary-end.js';
import type { Lease } from '../actuate/lease.js';
import { type CanarySeen, type CanaryVerdict, judgeCanary } from '../decide/canary.js';
import { type Canary, isCanaryName, parseCanary } from '../redis/canary.js';
import { fleetKeys, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { readSources } from '../redis/sources.js';
import { logAdoption } from './adoption-log.js';
import { createSeenSoFar, responseObjective, type SeenSoFar } from './canary-seen.js';
import type { LimiterDeps } from './managed-limiter.js';

export interface CanaryWatch {
  /** One turn of the leader. True: it wrote, and the turn is over. */
  act(params: Params, nowUs: number): Promise<boolean>;
}

const LOOK_MS = 1_000;
/** A canary's limiter without a canary is one whose beginning ended half-way. */
const STRAY_MS = 30_000;

export function createCanaryWatch(deps: LimiterDeps & { lease: Lease }): CanaryWatch {
  const { redis, address, owner, lease, leaseMs, clock, log, metrics } = deps;
  const limiter = address.name;
  const other = canaryAddress(address);
  /** Of the canary that goes on. */
  let now: {
    of: string;
    loaded: LoadedPolicy | null;
    canary: SeenSoFar;
    others: SeenSoFar;
  } | null = null;
  let lookAtMs = 0;
  let strayAtMs: number | null = null;

  async function begin(canary: Canary): Promise<NonNullable<typeof now>> {
    const of = `${canary.policy} ${canary.since}`;
    if (now?.of === of) return now;
    const loaded = await readAdopted(redis, address, canary.policy);
    const seen = (one: typeof address) => createSeenSoFar(redis, one, canary.since);
    now = { of, loaded, canary: seen(other), others: seen(address) };
    return now;
  }

  async function look(canary: Canary, nowMs: number) {
    const watched = await begin(canary);
    await watched.canary.read(nowMs);
    await watched.others.read(nowMs);
    const { loaded } = watched;
    const objective = loaded === null ? null : responseObjective(loaded.policy);
    const [generation] = await redis.hmget(limiterKeys(other).params, 'generation');
    const seen: CanarySeen = {
      elapsedMs: nowMs - canary.since,
      forMs: canary.forMs,
      mostMs: canary.until - canary.since,
      // Its params were made anew when it began.
      tripped: Number(generation ?? 0) > 0,
      canary: watched.canary.group(objective),
      others: watched.others.group(objective),
      objective,
    };
    return { loaded, seen, judged: judgeCanary(seen) };
  }

  function options(): AdoptOptions | null {
    const authority = lease.authority();
    if (authority === null) return null;
    const actor = { kind: 'autopilot' as const, name: owner };
    return { authority, actor, leaseMs, nowMs: clock.nowMs(), prefix: address.prefix };
  }

  async function passes(loaded: LoadedPolicy, canary: Canary, seen: CanarySeen, why: string) {
    const given = options();
    if (given === null) return;
    const sources = await readSources(redis, limiterKeys(address));
    const source = sources.find(({ hash }) => hash === loaded.hash);
    const file = source?.file || loaded.file;
    const text = source?.text ?? undefined;
    const from = { ...loaded, file, ...(text === undefined ? {} : { text }) };
    const sentence = `The canary of policy ${loaded.hash.slice(0, 12)} passed: ${why}.`;
    const outcome = await adopt(redis, from, {
      ...given,
      passed: { sentence, detail: { canary, seen } },
    });
    logAdoption(log, limiter, from, outcome);
    if (outcome.status === 'changed') metrics.changes.inc({ limiter, reason: 'canary_passed' });
  }

  async function ends(
    params: Params,
    nowUs: number,
    canary: Canary,
    how: 'failed' | 'unproven',
    why: string,
    seen: CanarySeen,
  ) {
    const given = options();
    if (given === null) return;
    const with_ = { ...given, detail: { seen } };
    const reply = await endCanary(redis, address, params, nowUs, canary, how, why, with_);
    if (reply.status !== 'ok') {
      if (reply.reason === 'lease') lease.lost();
      return;
    }
    const { epoch, revision } = reply;
    metrics.changes.inc({ limiter, reason: `canary_${how}` });
    log.warn(
      { event: 'change', limiter, epoch, revision, reason: `canary_${how}` },
      `The canary of policy ${canary.policy.slice(0, 12)} of ${limiter}: ${how}, ${why}.`,
    );
  }

  /** Nobody would judge it. */
  async function takeStrayOff(nowMs: number): Promise<void> {
    const { limiters } = fleetKeys(address.prefix);
    if ((await redis.hexists(limiters, other.name)) === 0) strayAtMs = null;
    else if (strayAtMs === null) strayAtMs = nowMs;
    else if (nowMs - strayAtMs >= STRAY_MS) await retireCanary(redis, address);
  }

  return {
    async act(params, nowUs) {
      const nowMs = nowUs / 1000;
      const atMs = clock.monotonicMs();
      if (isCanaryName(limiter)) return false;
      const canary = parseCanary(params.canary);
      const goesOn = canary !== null && canary.ended === undefined;
      if (atMs < lookAtMs) return false;
      lookAtMs = atMs + (goesOn ? LOOK_MS : STRAY_MS);
      if (!goesOn) {
        now = null;
        await takeStrayOff(nowMs);
        return false;
      }
      strayAtMs = null;
      const { loaded, seen, judged } = await look(canary, nowMs);
      const { verdict, why }: CanaryVerdict = judged;
      if (verdict === 'waits') return false;
      if (verdict === 'passed' && loaded !== null) await passes(loaded, canary, seen, why);
      else if (verdict === 'failed') await ends(params, nowUs, canary, 'failed', why, seen);
      else await ends(params, nowUs, canary, 'unproven', why, seen);
      return true;
    },
  };
}
