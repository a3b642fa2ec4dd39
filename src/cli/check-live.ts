/** `flyball check --live`: asks each source of each policy, and says what is wrong and how to mend it. Stage: cli. */
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../clock.js';
import { describeFault } from '../faults.js';
import { createLog } from '../log.js';
import { fileWithCode } from '../policy/code.js';
import type { LoadedPolicy } from '../policy/load.js';
import type { Signal } from '../policy/schema.js';
import { advisePage } from '../sense/advice-page.js';
import { adviseQuery } from '../sense/advice-prometheus.js';
import type { Missing } from '../sense/readings.js';
import type { Seen } from '../sense/source.js';
import { createSourcePool } from '../sense/source-pool.js';
import { isSourced, type SourcedSignal } from '../sense/sources.js';
import { unitOf, withUnit } from '../view/signal-unit.js';
import { mendOf } from './live-mends.js';
import type { CliIo } from './output.js';
import { clean, span } from './text.js';

export interface LiveFinding {
  limiter: string;
  signal: string;
  source: Signal['source'];
  status: 'ok' | 'quiet' | 'fail';
  value: number | null;
  ageMs: number | null;
  reason: string | null;
  message: string;
  mend: string | null;
}

/** Rates need two looks. */
const AGAIN_MS = 1100;
/** The process of custom functions may take so long to start on a busy machine. */
const STARTING_MS = 10_000;
/** Reasons that say "nothing happens", not "cannot be read". */
const QUIET = new Set<string>(['no_traffic', 'not_started']);

/** Every source once, side by side, each with all of its deadline. */
export async function checkLive(
  loaded: readonly LoadedPolicy[],
  env: NodeJS.ProcessEnv,
): Promise<LiveFinding[]> {
  const log = createLog({ level: 'silent', fd: 2 });
  const policyFile = (code: string) => fileWithCode(loaded, code);
  const pool = createSourcePool({ env, log, clock: systemClock, everyMs: 0, policyFile });
  const opened = loaded.map(({ policy }) => {
    const signals = Object.entries(policy.signals).filter((each): each is [string, SourcedSignal] =>
      isSourced(each[1]),
    );
    return {
      limiter: policy.limiter.name,
      signals: Object.fromEntries(signals),
      open: pool.open(Object.fromEntries(signals)),
    };
  });
  try {
    await Promise.all(opened.map(({ open }) => open.ask()));
    const giveUpAt = systemClock.monotonicMs() + STARTING_MS;
    const starts = () => opened.some(({ open }) => open.newest().some(([, seen]) => isFirst(seen)));
    while (starts() && systemClock.monotonicMs() < giveUpAt) {
      await setTimeout(AGAIN_MS);
      await Promise.all(opened.map(({ open }) => open.ask()));
    }
    const findings = opened.flatMap(({ limiter, signals, open }) =>
      open.newest().map(([name, found]) => finding(limiter, name, signals[name]!, found, env)),
    );
    return await Promise.all(findings);
  } finally {
    await Promise.all(opened.map(({ open }) => open.close()));
  }
}

function isFirst(found: Seen | Missing): boolean {
  return found.kind === 'missing' && found.reason === 'not_started';
}

async function finding(
  limiter: string,
  name: string,
  signal: SourcedSignal,
  found: Seen | Missing,
  env: NodeJS.ProcessEnv,
): Promise<LiveFinding> {
  const of = { limiter, signal: name, source: signal.source };
  if (found.kind === 'value') {
    const ageMs = Math.max(0, Math.round(systemClock.monotonicMs() - found.monotonicMs));
    const detail = found.detail === undefined ? '' : ` (${found.detail})`;
    const message = `answers ${withUnit(found.value, unitOf(signal))}${detail}, ${span(ageMs)} old`;
    // Counters that have never counted have no series yet: 0 is right, or the label is wrong.
    const nothing = found.value === 0 ? await advice(signal, env) : null;
    const named = nothing === null ? null : `${nothing} If it has not happened yet, 0 is right.`;
    const mend = named ?? mendOf(signal, { ...found, kind: 'missing', reason: 'no_data' });
    const status = mend === null ? 'ok' : 'quiet';
    return { ...of, status, value: found.value, ageMs, reason: null, message, mend };
  }
  const { reason, detail } = found;
  const message = detail === undefined ? reason : `${reason}: ${detail}`;
  const quiet = QUIET.has(reason);
  const mend = quiet
    ? 'It will answer once there is something to see.'
    : ((reason === 'no_data' ? await advice(signal, env) : null) ?? mendOf(signal, found));
  return {
    ...of,
    status: quiet ? 'quiet' : 'fail',
    value: null,
    ageMs: null,
    reason,
    message,
    mend,
  };
}

/** What the source itself has in place of what was asked for. A question that fails leaves the plain words. */
async function advice(signal: SourcedSignal, env: NodeJS.ProcessEnv): Promise<string | null> {
  try {
    if (signal.source === 'prometheus') return await adviseQuery(signal, env);
    return signal.source === 'scrape' ? await advisePage(signal, env) : null;
  } catch (error) {
    return `Which names there are could not be asked (${describeFault(error).message}).`;
  }
}

export function liveLines(io: CliIo, findings: readonly LiveFinding[]): string {
  const { c } = io;
  const marks = { ok: c.green('ok   '), quiet: c.yellow('quiet'), fail: c.red('fail ') };
  const names = findings.map(({ limiter, signal }) => `${limiter}.${signal}`);
  const wide = Math.max(0, ...names.map((name) => name.length));
  return findings
    .flatMap(({ status, source, message, mend }, i) => [
      `${marks[status]} ${names[i]!.padEnd(wide)}  ${source}: ${clean(message)}`,
      ...(mend === null ? [] : [`${' '.repeat(wide + 8)}${c.dim(`→ ${clean(mend)}`)}`]),
    ])
    .join('\n');
}
