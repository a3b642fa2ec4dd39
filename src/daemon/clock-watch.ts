/** Measures each minute how far Redis's clock lies from this daemon's; too far apart, nothing is decided. Stage: daemon. */
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import { masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import type { Metrics } from '../report/metrics.js';
import { within } from '../sense/deadline.js';
import {
  apart,
  CLOCK_MEND,
  measureSkew,
  SKEW_HOLD_MS,
  type Skew,
  skewVerdict,
} from '../sense/skew.js';

const EVERY_MS = 60_000;
/** While they differ, and when it could not be measured: the end of it is seen soon. */
const AGAIN_MS = 5_000;
const DEADLINE_MS = 2_000;
/** A turn that comes late sees Redis's time late: no jump is smaller than this. */
const JUMP_MS = 3_000;

export interface ClockWatch {
  /** Redis's clock − ours at the newest measurement, ms; null before the first. */
  readonly skewMs: number | null;
  /** Why nothing may be decided now; null while the clocks agree well enough. */
  readonly heldFor: string | null;
  /** Redis's time as a turn has just seen it: a jump is measured at once, not within the minute. */
  notice(redisMs: number): void;
  close(): void;
}

/** Measures before it resolves; rejects with FLYBALL_E_CONFIG_CLOCK_SKEW when nothing could be decided from the start. */
export async function watchClocks(deps: {
  redis: RedisClient;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}): Promise<ClockWatch> {
  const { redis, clock, log, metrics } = deps;
  const known: { skew: Skew | null } = { skew: null };
  let told: ReturnType<typeof verdict> = 'ok';
  let timer: NodeJS.Timeout | undefined;
  let measuring = false;
  let failed = false;
  let closed = false;

  const verdict = () => (known.skew === null ? 'ok' : skewVerdict(known.skew));

  /** Of several servers the worst counts: each keeps the time of its own limiters. */
  async function measure(): Promise<void> {
    try {
      const each = await within(
        DEADLINE_MS,
        Promise.all(masters(redis).map((server) => measureSkew(clock, () => timeOf(server)))),
      );
      each.sort((a, b) => Math.abs(b.skewMs) - Math.abs(a.skewMs));
      known.skew = each[0] ?? known.skew;
      failed = false;
    } catch {
      // Whether Redis answers is told by the turns; what was measured last still holds.
      failed = true;
    }
    if (known.skew !== null) metrics.clockSkew.set({ of: 'redis' }, known.skew.skewMs / 1000);
  }

  function tell(): void {
    const now = verdict();
    if (now === told || known.skew === null) return;
    told = now;
    const { skewMs } = known.skew;
    const what = `Redis's clock is ${apart(skewMs, "this daemon's")}`;
    const fields = {
      event: now === 'ok' ? 'clocks_agree' : 'clock_skew',
      skewMs: Math.round(skewMs),
    };
    if (now === 'ok') log.info(fields, `${what}: near enough again.`);
    else if (now === 'warn')
      log.warn(fields, `${what}: times in logs do not compare. ${CLOCK_MEND}`);
    else log.error(fields, `${what}: nothing is decided until they agree. ${CLOCK_MEND}`);
  }

  function again(): void {
    if (closed || measuring) return;
    measuring = true;
    void measure().then(() => {
      measuring = false;
      tell();
      schedule();
    });
  }

  function schedule(): void {
    clearTimeout(timer);
    if (closed) return;
    timer = setTimeout(again, failed || verdict() !== 'ok' ? AGAIN_MS : EVERY_MS);
    timer.unref();
  }

  await measure();
  if (known.skew !== null && verdict() === 'hold') {
    throw new FlyballError(
      'FLYBALL_E_CONFIG_CLOCK_SKEW',
      `Redis's clock is ${apart(known.skew.skewMs, "this machine's")}, more than ${SKEW_HOLD_MS / 60_000} min: which of them is wrong cannot be known from here. ${CLOCK_MEND}`,
    );
  }
  tell();
  schedule();
  return {
    get skewMs() {
      return known.skew?.skewMs ?? null;
    },
    get heldFor() {
      if (known.skew === null || verdict() !== 'hold') return null;
      return `Redis's clock is ${apart(known.skew.skewMs, "this daemon's")}`;
    },
    notice(redisMs) {
      if (known.skew === null) return;
      if (Math.abs(redisMs - clock.nowMs() - known.skew.skewMs) > JUMP_MS) again();
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

async function timeOf(server: ReturnType<typeof masters>[number]): Promise<number> {
  const [seconds, micros] = await server.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
