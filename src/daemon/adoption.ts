/** Which policy file is adopted when a daemon starts: new ones are, old versions beside a living leader are not. Stage: daemon. */
import { type RedisClient, readParamsAnyhow } from '../actuate/actuator.js';
import { type LoadedPolicy, policyAddress } from '../actuate/adopt.js';
import { adoptOrTry } from '../actuate/canary.js';
import { wasReplaced } from '../actuate/person-policy.js';
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import { isTried, parseCanary } from '../redis/canary.js';
import { limiterKeys } from '../redis/keys.js';
import { logAdoption } from './adoption-log.js';

export interface StartAdoption {
  redis: RedisClient;
  prefix: string;
  owner: string;
  leaseMs: number;
  nowMs: number;
  /** The daemon's own setting: with `apply` no changed file is adopted, whatever its policy says. */
  reload: 'auto' | 'apply';
  log: Logger;
}

/** Does a changed file wait for `flyball apply`? */
export function waitsForApply(reload: 'auto' | 'apply', { policy }: LoadedPolicy): boolean {
  return reload === 'apply' || policy.reload === 'apply';
}

/** A person or another daemon may write between read and write; a start tries this often. */
const ATTEMPTS = 5;

/**
 * Adopts the file's policy unless it is adopted already, waits for `flyball apply`, is what a person replaced, or is
 * an earlier version while another daemon leads: then this daemon's files are behind, and it reports drift. Nor does a
 * start end the canary of a person, or of a daemon that leads.
 */
export async function adoptAtStart(options: StartAdoption, loaded: LoadedPolicy): Promise<void> {
  const { redis, prefix, owner, leaseMs, nowMs, log } = options;
  const { name } = loaded.policy.limiter;
  const address = policyAddress(loaded.policy, prefix);
  const keys = limiterKeys(address);
  const isLed = async () => (await redis.exists(keys.lease)) === 1;
  for (let attempt = 1; ; attempt++) {
    const { params, nowUs } = await readParamsAnyhow(redis, address);
    if (params?.policyHash === loaded.hash) {
      // No news: a person tries another than the file's, or this daemon's files are behind.
      const tried = parseCanary(params.canary);
      if (isTried(tried, nowUs / 1000) && (tried.by !== undefined || (await isLed()))) return;
    }
    if (params !== null && params.policyHash !== loaded.hash) {
      if (waitsForApply(options.reload, loaded)) {
        log.warn(
          { event: 'policy_pending', limiter: name, file: loaded.file },
          `${loaded.file} differs from the adopted policy of ${name} and waits for \`flyball apply\`.`,
        );
        return;
      }
      const by = wasReplaced(params.byPerson, loaded.hash);
      if (by !== null) {
        log.warn(
          { event: 'policy_held', limiter: name, file: loaded.file },
          `${loaded.file} is what ${by} replaced: it is not adopted again before it changes. \`flyball policy use ${name} --release\` gives the limiter back to it.`,
        );
        return;
      }
      const earlier = (await redis.exists(keys.policyVersion(loaded.hash))) === 1;
      if (earlier && (await isLed())) {
        log.warn(
          { event: 'policy_drift', limiter: name, file: loaded.file },
          `${loaded.file} is an earlier version of the adopted policy of ${name}, and another daemon leads: it is not adopted.`,
        );
        return;
      }
    }
    const outcome = await adoptOrTry(redis, loaded, {
      actor: { kind: 'autopilot', name: owner },
      leaseMs,
      nowMs,
      prefix,
    });
    if (outcome.status === 'refused' && outcome.reason === 'write' && attempt < ATTEMPTS) continue;
    logAdoption(log, name, loaded, outcome);
    if (outcome.status === 'refused' && outcome.reason === 'group') {
      throw new FlyballError('FLYBALL_E_POLICY_GROUP', outcome.sentence);
    }
    return;
  }
}

const OF_RIGHTS = /^(NOPERM|NOAUTH)|user executing the script can't/;
const OF_THE_CONNECTION = /timed out|Connection is closed|max retries/;

/** What passes by itself: a full Redis, a replica about to be promoted. */
const PASSES = /^(READONLY|OOM|MISCONF|NOREPLICAS)/;
const AGAIN_MS = 250;

/** Tries again for so long while Redis takes no writes: a start in the middle of that is no fault of the start. */
export async function whileRefused(
  forMs: number,
  { clock, log }: { clock: Clock; log: Logger },
  write: () => Promise<void>,
): Promise<void> {
  const giveUpAtMs = clock.monotonicMs() + forMs;
  for (let told = false; ; told = true) {
    try {
      return await write();
    } catch (error) {
      const { message } = error as Error;
      if (!PASSES.test(message) || clock.monotonicMs() >= giveUpAtMs) throw error;
      if (!told) log.warn({ event: 'redis_refuses', err: error }, `${message} It is tried again.`);
      await new Promise((ok) => setTimeout(ok, AGAIN_MS));
    }
  }
}

/** A fault of the settings, the rights or Redis as a whole: then no limiter can be adopted, and the start ends. */
export function concernsAll(error: unknown): boolean {
  const { code, message } = error as { code?: string; message: string };
  if (code === 'FLYBALL_E_POLICY_GROUP') return true;
  return [OF_RIGHTS, PASSES, OF_THE_CONNECTION].some((fault) => fault.test(message));
}
