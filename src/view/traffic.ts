/** A few telemetry seconds as traffic per second: who denied what, and how many processes report completions. Pure. Stage: cli, api. */
import { codeOf, FIELD } from '../redis/telemetry-fields.js';

export interface Traffic {
  /** Whether any process flushed in these seconds. */
  seen: boolean;
  offeredPerSecond: number;
  admittedPerSecond: number;
  /** Denials per second by reason. */
  deniedPerSecond: Record<string, number>;
  /** Admitted in shadow, but enforcement would have denied it. */
  wouldDenyPerSecond: Record<string, number>;
  processes: number;
  reporting: number;
  /** Requests under way, all processes together; null: none reports. */
  inFlight: number | null;
}

const DENIED = FIELD.denied('');
const WOULD_DENY = FIELD.wouldDeny('');
const PROCESS = FIELD.process('');
const REPORTING = FIELD.reportingProcess('');

const NEWLINE = 10;
const COLON = 58;
const PLAIN = [FIELD.offered, FIELD.admitted, FIELD.flushes, FIELD.inFlight];
/** Kinds that are summed below, by their code; those with a name behind them end with a colon. */
const KINDS = new Set(
  [...PLAIN, DENIED, WOULD_DENY, PROCESS, REPORTING].map((kind) =>
    codeOf(Buffer.from(kind), 0, kind.length),
  ),
);

/** What is summed below of a second's lines, and no more: nine of ten are bins, which need not be taken apart. */
export function trafficFields(lines: Buffer): Record<string, string> {
  const fields: Record<string, string> = {};
  const { length } = lines;
  for (let at = 0; at < length; ) {
    let kindEnd = 0;
    let nameEnd = at;
    for (; nameEnd < length; nameEnd++) {
      const byte = lines[nameEnd]!;
      if (byte === NEWLINE) break;
      if (byte === COLON && kindEnd === 0) kindEnd = nameEnd + 1;
    }
    if (kindEnd === 0) kindEnd = nameEnd;
    let countEnd = nameEnd + 1;
    while (countEnd < length && lines[countEnd] !== NEWLINE) countEnd++;
    if (KINDS.has(codeOf(lines, at, kindEnd))) {
      fields[lines.toString('utf8', at, nameEnd)] = lines.toString('latin1', nameEnd + 1, countEnd);
    }
    at = countEnd + 1;
  }
  return fields;
}

/** Sums the hashes of whole seconds. Fields that are no plain count are left out. */
export function sumSeconds(hashes: readonly Record<string, string>[], seconds: number): Traffic {
  const processes = new Set<string>();
  const reporting = new Set<string>();
  const denied: Record<string, number> = {};
  const wouldDeny: Record<string, number> = {};
  let offered = 0;
  let admitted = 0;
  let flushes = 0;
  let inFlight = 0;
  for (const hash of hashes) {
    for (const [field, text] of Object.entries(hash)) {
      if (field.startsWith(PROCESS)) processes.add(field.slice(PROCESS.length));
      else if (field.startsWith(REPORTING)) reporting.add(field.slice(REPORTING.length));
      else if (field === FIELD.offered) offered += count(text);
      else if (field === FIELD.admitted) admitted += count(text);
      else if (field === FIELD.flushes) flushes += count(text);
      else if (field === FIELD.inFlight) inFlight += count(text);
      else {
        const prefix = [DENIED, WOULD_DENY].find((p) => field.startsWith(p));
        if (prefix === undefined) continue;
        const reason = field.slice(prefix.length);
        const into = prefix === DENIED ? denied : wouldDeny;
        into[reason] = (into[reason] ?? 0) + count(text) / seconds;
      }
    }
  }
  return {
    seen: processes.size > 0 || offered > 0,
    offeredPerSecond: offered / seconds,
    admittedPerSecond: admitted / seconds,
    deniedPerSecond: denied,
    wouldDenyPerSecond: wouldDeny,
    processes: processes.size,
    reporting: reporting.size,
    // A gauge summed over flushes: its mean, times the processes.
    inFlight: flushes > 0 && reporting.size > 0 ? (inFlight / flushes) * processes.size : null,
  };
}

/** A process that has not asked for its share this long is gone. */
const SHARE_LAPSE_US = 3_000_000;

/**
 * Processes by the in-flight shares (`need share reports atUs`), which every live process asks for each second,
 * with traffic or without; nothing when there are none, so that telemetry's count stands.
 */
export function liveProcesses(
  shares: Record<string, string>,
  nowUs: number,
): Pick<Traffic, 'processes' | 'reporting'> | Record<string, never> {
  let processes = 0;
  let reporting = 0;
  for (const text of Object.values(shares)) {
    const match = /^\d+ -?\d+ ([01]) (\d+)$/.exec(text);
    if (!match || nowUs - Number(match[2]) >= SHARE_LAPSE_US) continue;
    processes += 1;
    if (match[1] === '1') reporting += 1;
  }
  return processes > 0 ? { processes, reporting } : {};
}

function count(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : 0;
}
