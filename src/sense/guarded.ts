/** What keeps a source that hangs, fails or lies about its end from costing anyone more than its deadline. Stage: sense. */
import CircuitBreaker from 'opossum';
import { type Logger, redacted } from '../log.js';
import { DeadlineError, waitAtMost, within } from './deadline.js';
import type { Missing } from './readings.js';
import { shortened } from './source.js';

export interface GuardedOptions<T> {
  /** What is asked, for people, without its secrets: `PostgreSQL at db:5432`. */
  name: string;
  /** `signal.source`, for the log. */
  source: string;
  deadlineMs: number;
  log: Logger;
  /** What asking needs of this machine's disk. A slow one speaks of no server, so the first deadline begins after it. */
  load?: () => Promise<unknown>;
  /** `over` is aborted at the deadline and on close. */
  ask: (over: AbortSignal) => Promise<T>;
  /** Why an error of `ask` means that there is no reading; its detail is redacted and cut here. */
  missingFor: (error: unknown) => Missing;
  /** Never to be seen in a detail or in the log. */
  secrets?: readonly string[];
}

export interface Guarded<T> {
  /** Never rejects, ends within the deadline once all is loaded; calls at once share one. */
  ask(): Promise<T | Missing>;
  close(): void;
}

const RETRY_MS = 5_000;
const LOAD_MS = 10_000;

export function guarded<T extends object>(options: GuardedOptions<T>): Guarded<T> {
  const { name, source, deadlineMs, log, secrets = [] } = options;
  let under: Promise<T | Missing> | undefined;
  let over: AbortController | undefined;
  let lastError = '';
  let loaded: Promise<void> | undefined;

  async function asked(): Promise<T> {
    const ending = new AbortController();
    over = ending;
    try {
      return await within(deadlineMs, options.ask(ending.signal));
    } finally {
      ending.abort();
    }
  }

  const breaker = new CircuitBreaker(asked, {
    // The action ends by its own deadline, so a probe always settles and no late success closes the circuit.
    // This one is only the net below it.
    timeout: deadlineMs + 500,
    // The default of 0 opens on the first failure of all.
    volumeThreshold: 3,
    errorThresholdPercentage: 60,
    rollingCountTimeout: 10_000,
    resetTimeout: RETRY_MS,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  });
  breaker.on('open', () => {
    log.warn(
      { event: 'signal_away', source },
      `${name} does not answer (${lastError}); it is asked again every ${RETRY_MS / 1000} s.`,
    );
  });
  breaker.on('close', () => {
    log.info({ event: 'signal_back', source }, `${name} answers again.`);
  });

  async function guardedAsk(): Promise<T | Missing> {
    if (options.load !== undefined) {
      loaded ??= waitAtMost(LOAD_MS, options.load());
      await loaded;
    }
    try {
      return await breaker.fire();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'EOPENBREAKER' || code === 'ESHUTDOWN') {
        return { kind: 'missing', reason: 'breaker_open', detail: `last error: ${lastError}` };
      }
      const { reason, detail } = options.missingFor(error);
      const told = shortened(redacted(detail ?? reason, secrets));
      lastError = told;
      return { kind: 'missing', reason, detail: told };
    }
  }

  return {
    ask() {
      under ??= guardedAsk().finally(() => {
        under = undefined;
      });
      return under;
    },
    close() {
      breaker.shutdown();
      over?.abort();
    },
  };
}

/** Did it end by its deadline, or by that of something below? */
export function isLate(error: unknown): boolean {
  const { message = '', code = '', name = '' } = error as Record<string, string | undefined>;
  return (
    error instanceof DeadlineError ||
    name === 'AbortError' ||
    code === 'ETIMEDOUT' ||
    /\btime(d )?out/i.test(message)
  );
}

const AWAY =
  /^(ECONN|ENOTFOUND|EAI_|EHOST|ENET|EPIPE|ERR_SOCKET|UND_ERR_(CONNECT|SOCKET)|PROTOCOL_CONNECTION_LOST)/;

/** Was there no connection, or did it break? */
export function isAway(error: unknown): boolean {
  const { message = '', code = '' } = error as { message?: string; code?: string };
  return AWAY.test(String(code)) || /ECONN|socket hang up|terminated/.test(message);
}

/** What an error says; some have only a code. */
export function textOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: string; code?: string };
  return message || String(code ?? '') || 'unknown error';
}
