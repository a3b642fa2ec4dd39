/** Looks after the canary of a limiter that is led here: judges it, adopts what has passed, takes back what has not. Stage: daemon. */
import { adopt, type LoadedPolicy } from '../actuate/adopt.js';
import type { AdoptOptions, AdoptOutcome } from '../actuate/adopt-types.js';
import { readAdopted } from '../actuate/adopted-policy.js';
import { beginAnew, endCanary } from '../actuate/canary.js';
import { canaryAddress, retireCanary } from '../actuate/canary-end.js';
import { lookAtCanaryLimiter } from '../actuate/canary-limiter.js';
import type { Lease } from '../actuate/lease.js';
import { type CanarySeen, judgeCanary } from '../decide/canary.js';
import { type Canary, goesOn, isCanaryName, parseCanary, restsAt } from '../redis/canary.js';
import { fleetKeys, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { readSources } from '../redis/sources.js';
import { TELEMETRY_TTL_MS } from '../redis/telemetry-fields.js';
import { logAdoption } from './adoption-log.js';
import { restedUntil } from './canary-rest.js';
import { createSeenSoFar, responseObjective, type SeenSoFar } from './canary-seen.js';
import type { LimiterDeps } from './managed-limiter.js';

export interface CanaryWatch {
  /** One turn of the leader. True: it wrote, and the turn is over. */
  act(params: Params, nowUs: number): Promise<boolean>;
}

export type CanaryWatchDeps = Pick<
  LimiterDeps,
  'redis' | 'address' | 'owner' | 'leaseMs' | 'clock' | 'log' | 'metrics' | 'fileState'
> & { lease: Lease };

const LOOK_MS = 1_000;
/** A canary's limiter without a canary is one whose beginning ended half-way. */
const STRAY_MS = 30_000;

const CHANGED = (name: string) =>
  `${name} was changed or lost, and what it has seen proves nothing`;

const TAKEN_BACK = 'the file of the daemon that leads says the adopted version';

interface Watched {
  of: string;
  loaded: LoadedPolicy | null;
  canary: SeenSoFar;
  others: SeenSoFar;
  lookedMs: number;
  restedMs: number;
}

export function createCanaryWatch(deps: CanaryWatchDeps): CanaryWatch {
  const { redis, address, owner, lease, leaseMs, clock, log, metrics } = deps;
  const limiter = address.name;
  const other = canaryAddress(address);
  /** Of the canary that goes on. */
  let now: Watched | null = null;
  let lookAtMs = 0;
  let strayLookAtMs = 0;
  let strayAtMs: number | null = null;

  /** With the name and the text of its file. */
  async function readTried(version: string): Promise<LoadedPolicy | null> {
    const loaded = await readAdopted(redis, address, version);
    if (loaded === null) return null;
    const sources = await readSources(redis, limiterKeys(address));
    const { file, text } = sources.find(({ hash }) => hash === version) ?? {};
    return { ...loaded, file: file || loaded.file, ...(text ? { text } : {}) };
  }

  async function begin(canary: Canary, params: Params, nowMs: number): Promise<Watched> {
    const of = `${canary.policy} ${canary.epoch}`;
    if (now?.of === of) return now;
    const loaded = await readTried(canary.policy);
    // Who leads late cannot read what was before, and goes on after the last rest that it did not see.
    const fromMs = Math.max(canary.since, nowMs - TELEMETRY_TTL_MS);
    const countsMs = await restedUntil(redis, address, params, { fromMs, nowMs });
    const seen = (one: typeof address) => createSeenSoFar(redis, one, countsMs);
    const groups = { canary: seen(other), others: seen(address) };
    now = { of, loaded, ...groups, lookedMs: countsMs, restedMs: countsMs - canary.since };
    return now;
  }

  async function look(watched: Watched, canary: Canary, rests: string | null, nowMs: number) {
    for (const group of [watched.canary, watched.others]) {
      if (rests === null) await group.read(nowMs);
      else group.skip(nowMs);
    }
    // What is not kept any more cannot be read: of that time nothing counts.
    const readMs = rests === null ? TELEMETRY_TTL_MS : 0;
    watched.restedMs += Math.max(0, nowMs - watched.lookedMs - readMs);
    watched.lookedMs = nowMs;
    const { loaded, restedMs } = watched;
    const objective = loaded === null ? null : responseObjective(loaded.policy);
    // Asked after the reading: what has been read so far is then of this very canary.
    const { whole, tripped } = await lookAtCanaryLimiter(redis, address, canary);
    const seen: CanarySeen = {
      elapsedMs: nowMs - canary.since,
      forMs: canary.forMs,
      mostMs: canary.until - canary.since,
      ...{ tripped, rests, restedMs },
      canary: watched.canary.group(objective),
      others: watched.others.group(objective),
      objective,
    };
    return { whole, seen };
  }

  function options(): AdoptOptions | null {
    const authority = lease.authority();
    if (authority === null) return null;
    const actor = { kind: 'autopilot' as const, name: owner };
    return { authority, actor, leaseMs, nowMs: clock.nowMs(), prefix: address.prefix };
  }

  /** Who wrote in between is read at the next look: what was judged may stand no more. */
  function tell(loaded: LoadedPolicy, outcome: AdoptOutcome): void {
    const refused = outcome.status === 'refused' ? outcome : null;
    const reply = refused?.reason === 'write' ? refused.reply : null;
    const why = reply?.status === 'refused' ? reply.reason : refused?.reason;
    if (why === 'lease') lease.lost();
    if (why !== 'lease' && why !== 'revision' && why !== 'moved') {
      logAdoption(log, limiter, loaded, outcome);
    }
  }

  async function passes(
    loaded: LoadedPolicy,
    judged: Params,
    canary: Canary,
    seen: CanarySeen,
    why: string,
  ): Promise<void> {
    const given = options();
    if (given === null) return;
    const sentence = `The canary of policy ${loaded.hash.slice(0, 12)} passed: ${why}.`;
    const outcome = await adopt(redis, loaded, {
      ...given,
      passed: { sentence, detail: { canary, seen }, by: canary.by },
      moved: (params, nowMs) =>
        params?.canary === judged.canary ? restsAt(params, nowMs) : 'another canary stands',
    });
    tell(loaded, outcome);
    if (outcome.status === 'changed') metrics.changes.inc({ limiter, reason: 'canary_passed' });
  }

  async function ends(
    found: { params: Params; nowUs: number },
    canary: Canary,
    how: 'failed' | 'unproven',
    why: string,
    seen: CanarySeen,
  ): Promise<void> {
    const given = options();
    if (given === null) return;
    const with_ = { ...given, detail: { seen } };
    const reply = await endCanary(redis, address, found, canary, how, why, with_);
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

  async function startsAnew(
    loaded: LoadedPolicy,
    canary: Canary,
    found: { params: Params; nowUs: number },
  ): Promise<void> {
    const given = options();
    if (given === null) return;
    tell(loaded, await beginAnew(redis, loaded, canary, CHANGED(other.name), found, given));
  }

  /** Nobody would judge it. */
  async function takeStrayOff(nowMs: number): Promise<void> {
    const { limiters } = fleetKeys(address.prefix);
    if ((await redis.hexists(limiters, other.name)) === 0) strayAtMs = null;
    else if (strayAtMs === null) strayAtMs = nowMs;
    else if (nowMs - strayAtMs >= STRAY_MS) await retireCanary(redis, address);
  }

  /**
   * What a file has begun, another may have taken back since, one daemon after the other: no start ends a canary while
   * another leads. Or the change has not come here yet: then a daemon that has it will lead.
   */
  function isTakenBack(params: Params, { by, policy }: Canary): boolean {
    return by === undefined && deps.fileState(params.policyHash, policy).file === 'same';
  }

  return {
    async act(params, nowUs) {
      if (isCanaryName(limiter)) return false;
      const nowMs = nowUs / 1000;
      const atMs = clock.monotonicMs();
      const canary = parseCanary(params.canary);
      if (!goesOn(canary)) {
        now = null;
        if (atMs < strayLookAtMs) return false;
        strayLookAtMs = atMs + STRAY_MS;
        await takeStrayOff(nowMs);
        return false;
      }
      strayAtMs = null;
      if (atMs < lookAtMs) return false;
      lookAtMs = atMs + LOOK_MS;
      const found = { params, nowUs };
      const watched = await begin(canary, params, nowMs);
      const { loaded } = watched;
      const rests = restsAt(params, nowMs);
      const { whole, seen } = await look(watched, canary, rests, nowMs);
      const inTime = seen.elapsedMs < seen.mostMs;
      if (!whole && inTime) {
        if (loaded === null || rests !== null) return false;
        await startsAnew(loaded, canary, found);
        return true;
      }
      const { verdict, why } = whole
        ? judgeCanary(seen)
        : { verdict: 'unproven', why: CHANGED(other.name) };
      if (verdict === 'waits') return false;
      if (verdict === 'passed' && isTakenBack(params, canary)) {
        if (!inTime) await ends(found, canary, 'unproven', `${TAKEN_BACK}: ${why}`, seen);
        return !inTime;
      }
      if (verdict === 'passed' && loaded !== null) await passes(loaded, params, canary, seen, why);
      else await ends(found, canary, verdict === 'failed' ? 'failed' : 'unproven', why, seen);
      return true;
    },
  };
}
