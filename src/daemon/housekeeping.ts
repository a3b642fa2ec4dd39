/** What a daemon does every few seconds beside its turns: changed files, and limiters registered by others. Stage: daemon. */
import { type LoadedPolicy, policyAddress } from '../actuate/adopt.js';
import type { Logger } from '../log.js';
import { isCanaryName } from '../redis/canary.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { ManagedLimiter } from './managed-limiter.js';
import type { PolicyFiles } from './policy-files.js';

export interface Housekeeping {
  /** Once now, then again and again. Never rejects. */
  start(): Promise<void>;
  stop(): void;
}

export function createHousekeeping(daemon: {
  everyMs: number;
  prefix: string;
  log: Logger;
  policies: PolicyFiles;
  limiters: Map<string, ManagedLimiter>;
  /** Begins to manage a limiter that is not yet. */
  manage: (address: LimiterAddress) => void;
  /** Files whose limiter could not be read or written at the start, or is not there; what succeeds is taken out. */
  unadopted: Map<string, LoadedPolicy>;
  adopt: (loaded: LoadedPolicy) => Promise<void>;
  /** Does a changed file wait for `flyball apply`? */
  waits: (loaded: LoadedPolicy) => boolean;
  registered: () => Promise<LimiterAddress[]>;
}): Housekeeping {
  const { everyMs, prefix, log, policies, limiters, manage } = daemon;
  const { unadopted, adopt, waits, registered } = daemon;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let failing = false;

  async function housekeep(): Promise<void> {
    for (const loaded of await policies.poll()) {
      const { name } = loaded.policy.limiter;
      unadopted.delete(name);
      if (!waits(loaded)) {
        manage(policyAddress(loaded.policy, prefix));
        limiters.get(name)?.offer(loaded);
      } else if (!limiters.has(name)) {
        // A new limiter has nothing in force to change: as at the start, its file makes it.
        unadopted.set(name, loaded);
        manage(policyAddress(loaded.policy, prefix));
      } else {
        log.warn(
          { event: 'policy_pending', limiter: name, file: loaded.file },
          `${loaded.file} has changed and waits for \`flyball apply\`.`,
        );
      }
    }
    // Redis was emptied before this daemon had read what it adopted: only its file knows the limiter.
    for (const [name, loaded] of policies.files) {
      if (limiters.get(name)?.empty) unadopted.set(name, loaded);
    }
    for (const [name, loaded] of unadopted) {
      const adopting = adopt(loaded).then(() => unadopted.delete(name));
      await adopting.catch(() => {});
    }
    const all = await registered();
    for (const address of all) manage(address);
    const names = new Set(all.map(({ name }) => name));
    // A canary that has ended. A turn of it that still runs finds its lease gone.
    for (const [name, limiter] of [...limiters]) {
      if (!isCanaryName(name) || names.has(name)) continue;
      limiters.delete(name);
      await limiter.close();
    }
  }

  /** A registry that cannot be read is told once, and ends neither the start nor the loop. */
  async function tidy(): Promise<void> {
    try {
      await housekeep();
      if (failing) log.info({ event: 'housekeeping_recovered' });
      failing = false;
    } catch (error) {
      if (failing) return;
      failing = true;
      log.warn(
        { event: 'housekeeping_failed', err: error },
        `Files or registries could not be looked after: ${(error as Error).message}. Limiters go on.`,
      );
    }
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void tidy().finally(() => {
        if (!stopped) schedule();
      });
    }, everyMs);
  }

  return {
    async start() {
      await tidy();
      if (!stopped) schedule();
    },
    stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
