/** A few telemetry seconds as traffic per second: who denied what, and how many processes report completions. Pure. Stage: cli, api. */
import { FIELD } from '../redis/telemetry-fields.js';

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

/** What one telemetry second counts of traffic. */
export interface SecondTraffic {
  offered: number;
  admitted: number;
  flushes: number;
  /** A gauge, summed over flushes. */
  inFlight: number;
  /** Names, tabs between: most seconds name the same. */
  processes: string;
  reporting: string;
  /** Fields and their counts in turn. */
  denied: readonly string[];
}

const DENIED = FIELD.denied('');
const WOULD_DENY = FIELD.wouldDeny('');
const PROCESS = FIELD.process('');
const REPORTING = FIELD.reportingProcess('');
const NONE: readonly string[] = [];

/** Of the script's lines. */
export function trafficOfLines(lines: readonly string[]): SecondTraffic {
  return {
    offered: count(lines[0]),
    admitted: count(lines[1]),
    flushes: count(lines[2]),
    inFlight: count(lines[3]),
    processes: lines[4] ?? '',
    reporting: lines[5] ?? '',
    denied: lines.length > 6 ? lines.slice(6) : NONE,
  };
}

/** Of a whole telemetry hash. */
export function trafficOfHash(hash: Record<string, string>): SecondTraffic {
  const fields = Object.keys(hash);
  const named = (kind: string) => fields.filter((field) => field.startsWith(kind));
  const names = (kind: string) => named(kind).map((field) => field.slice(kind.length));
  return {
    offered: count(hash[FIELD.offered]),
    admitted: count(hash[FIELD.admitted]),
    flushes: count(hash[FIELD.flushes]),
    inFlight: count(hash[FIELD.inFlight]),
    processes: names(PROCESS).join('\t'),
    reporting: names(REPORTING).join('\t'),
    denied: [...named(DENIED), ...named(WOULD_DENY)].flatMap((field) => [field, hash[field]!]),
  };
}

/** Sums whole seconds, `length` of which were asked for. A count that is no plain one is 0. */
export function sumSeconds(seconds: readonly SecondTraffic[], length: number): Traffic {
  const deniedPerSecond: Record<string, number> = {};
  const wouldDenyPerSecond: Record<string, number> = {};
  const processes = namesIn(seconds.map((second) => second.processes));
  const reporting = namesIn(seconds.map((second) => second.reporting));
  let offered = 0;
  let admitted = 0;
  let flushes = 0;
  let inFlight = 0;
  for (const second of seconds) {
    offered += second.offered;
    admitted += second.admitted;
    flushes += second.flushes;
    inFlight += second.inFlight;
    const { denied } = second;
    for (let i = 0; i + 1 < denied.length; i += 2) {
      const field = denied[i]!;
      const would = field.startsWith(WOULD_DENY);
      const reason = field.slice((would ? WOULD_DENY : DENIED).length);
      const into = would ? wouldDenyPerSecond : deniedPerSecond;
      into[reason] = (into[reason] ?? 0) + count(denied[i + 1]) / length;
    }
  }
  return {
    seen: processes > 0 || offered > 0,
    offeredPerSecond: offered / length,
    admittedPerSecond: admitted / length,
    ...{ deniedPerSecond, wouldDenyPerSecond, processes, reporting },
    // A gauge summed over flushes: its mean, times the processes.
    inFlight: flushes > 0 && reporting > 0 ? (inFlight / flushes) * processes : null,
  };
}

/** How many different names. */
function namesIn(lists: readonly string[]): number {
  const [first = ''] = lists;
  if (lists.every((names) => names === first)) return first === '' ? 0 : first.split('\t').length;
  return new Set(lists.flatMap((names) => (names === '' ? [] : names.split('\t')))).size;
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

function count(text = ''): number {
  // No process counts to 1e15 in a second: somebody wrote that.
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
