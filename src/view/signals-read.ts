/** What is known of a limiter's signals: by the daemon that leads it, else by reading every source here and now. Stage: cli, api. */
import { setTimeout } from 'node:timers/promises';
import { readPolicy } from '../actuate/verbs/apply.js';
import { systemClock } from '../clock.js';
import type { Sample } from '../decide/types.js';
import { createEstimateState, estimate } from '../estimate/estimate.js';
import { createLog } from '../log.js';
import { policyHash } from '../policy/hash.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { LimiterStatus } from '../report/status.js';
import { detailsOf } from '../sense/readings.js';
import { createSampler } from '../sense/sampler.js';
import { createSourcePool, type SourcePool } from '../sense/source-pool.js';
import type { Session } from './limiters.js';
import { parseStatus } from './status-facts.js';

/** Whose signals: a limiter with the policy adopted for it, or with that of a file. */
export interface SignalSubject {
  address: LimiterAddress;
  /** Of a file; else the adopted one is read at each look. */
  policy?: Policy;
  file?: string;
}

export interface SeenSignals {
  limiter: string;
  policy: Policy;
  sample: Sample;
  details: Record<string, string>;
  /** `daemon`: as it saw them at its last tick; `here`: this command asked the sources. */
  from: 'daemon' | 'here';
  owner: string | null;
  /** Of the daemon's tick. */
  ageMs: number;
  /** Why the daemon decides nothing at all. */
  held: string | null;
}

export interface SignalReader {
  /** Null: no policy is adopted. */
  look(): Promise<SeenSignals | null>;
  close(): Promise<void>;
}

/** Services flush once a second, and counting begins with the first look. */
const FLUSH_MS = 1500;
/** The process of custom functions may take so long to start on a busy machine. */
const STARTING_MS = 10_000;
/** A daemon that wrote nothing for so many ticks does not lead. */
const LATE_TICKS = 3;

/** `policyFile`: where the functions of custom signals are. */
export function createPool(
  env: NodeJS.ProcessEnv,
  policyFile: (code: string) => string | null,
): SourcePool {
  const log = createLog({ level: 'silent', fd: 2 });
  return createSourcePool({ env, log, clock: systemClock, everyMs: 0, policyFile });
}

export function createSignalReader(
  session: Session,
  subject: SignalSubject,
  sources: SourcePool,
): SignalReader {
  const { address } = subject;
  let own: ReturnType<typeof readHere> | null = null;
  let ownHash = '';

  return {
    async look() {
      const policy = subject.policy ?? (await readPolicy(session.redis, address));
      if (policy === null) return null;
      const told = await seenByDaemon(session, address, policy);
      if (told !== null) return told;
      const hash = policyHash(policy);
      if (own === null || hash !== ownHash) {
        await own?.close();
        own = readHere(session, address, policy, sources);
        ownHash = hash;
      }
      return own.look();
    },
    async close() {
      await own?.close();
    },
  };
}

/** As the leader saw them at its last tick; null: nobody leads it with this policy. */
export async function seenByDaemon(
  { redis }: Session,
  address: LimiterAddress,
  policy: Policy,
): Promise<SeenSignals | null> {
  const [[text], [s, us]] = await Promise.all([
    redis.mget(limiterKeys(address).status),
    redis.time(),
  ]);
  const status = statusOf(text ?? null);
  if (status === null || status.policyHash !== policyHash(policy)) return null;
  const ageMs = Number(s) * 1000 + Number(us) / 1000 - status.atMs;
  if (ageMs > LATE_TICKS * Math.max(1000, status.tickMs)) return null;
  const { sample, details = {}, owner, decision } = status;
  return {
    ...{ limiter: address.name, policy, sample, details, from: 'daemon', owner },
    ageMs: Math.max(0, Math.round(ageMs)),
    held: decision.reason === 'clock_skew' ? decision.sentence : null,
  };
}

/** The same readings and estimates as in the daemon. */
function readHere(session: Session, address: LimiterAddress, policy: Policy, sources: SourcePool) {
  const sampler = createSampler({
    ...{ redis: session.redis, policy, address, clock: systemClock, sources },
    // Asked by a person: each source has all of its deadline.
    patienceMs: Number.POSITIVE_INFINITY,
  });
  let state = createEstimateState();
  let lastMs: number | null = null;

  async function once(): Promise<SeenSignals> {
    const startMs = systemClock.monotonicMs();
    const readings = await sampler.read();
    const dtMs = lastMs === null ? 1000 : startMs - lastMs;
    lastMs = startMs;
    const estimated = estimate(policy, state, readings, dtMs);
    state = estimated.state;
    // What is in force plays no part in what a signal is worth.
    const sample = { ...estimated.estimates, nowMs: readings.atMs, dtMs } as Sample;
    const details = detailsOf(readings);
    return {
      ...{ limiter: address.name, policy, sample, details, from: 'here', owner: null },
      ...{ ageMs: 0, held: null },
    };
  }

  return {
    async look() {
      if (lastMs !== null) return once();
      const giveUpAt = systemClock.monotonicMs() + STARTING_MS;
      let seen = await once();
      do {
        await setTimeout(FLUSH_MS);
        seen = await once();
      } while (starts(seen) && systemClock.monotonicMs() < giveUpAt);
      return seen;
    },
    close: () => sampler.close(),
  };
}

function starts({ sample }: SeenSignals): boolean {
  return Object.values(sample.signals).some(({ reason }) => reason === 'not_started');
}

function statusOf(text: string | null): LimiterStatus | null {
  const status = parseStatus(text);
  const whole = typeof status?.sample?.signals === 'object' && typeof status.atMs === 'number';
  return whole ? (status as LimiterStatus) : null;
}
