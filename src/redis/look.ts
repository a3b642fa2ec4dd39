/** Reads what a status shows of a limiter beside its params: of many limiters in one call, and no more than is new. Stage: cli, api. */
import type { LimiterKeys } from './keys.js';
import { readMarked } from './read-marked.js';
import type { RedisClient } from './run-script.js';
import { lookScript } from './scripts.gen.js';

/** What is known, and need not be told again. */
export interface LookWish {
  /** `owner:token` of the lease whose status is known; empty: none is. */
  lease: string;
  /** The newest entry known; empty: entries are not asked for. */
  entry: string;
  /** Telemetry seconds, and of each its mark as last read; empty: not read yet. */
  seconds: readonly { second: number; mark: string }[];
}

export interface Look {
  /** `owner:token`; null: nobody leads. */
  lease: string | null;
  /** Null: none, or the lease is the one whose status is known. */
  status: string | null;
  /** Of the in-flight cap, by process. */
  shares: Record<string, string>;
  /** Stored since, oldest first, as `XRANGE` gives them. */
  entries: [id: string, fields: string[]][];
  /** In the order asked for; null: nothing was added since its mark. */
  seconds: (TrafficLines | null)[];
}

/** What of a telemetry second is traffic, as the script has it. */
export interface TrafficLines {
  /** As in `Second`; empty: the second is not there. */
  mark: string;
  /** `off`, `adm`, `n`, `inf`, names of processes, of those that report (tabs between), then denials and their counts. */
  lines: string[];
}

/** Seconds of one look, as the script has it. */
export const LOOK_SECONDS = 5;
/** Keys of one call, of five limiters: Redis walks through all fields of seconds that have grown. */
const MOST_KEYS = 5 * (4 + LOOK_SECONDS);

const read = readMarked({ script: lookScript, each: 1, most: MOST_KEYS });

/** `wish.seconds` are `LOOK_SECONDS`. */
export async function readLook(
  redis: RedisClient,
  keys: LimiterKeys,
  wish: LookWish,
): Promise<Look> {
  const { replies } = await read(redis, [
    { key: keys.lease, mark: '' },
    { key: keys.status, mark: wish.lease },
    { key: keys.inFlight, mark: '' },
    { key: keys.audit, mark: wish.entry },
    ...wish.seconds.map(({ second, mark }) => ({ key: keys.telemetry(second), mark })),
  ]);
  const [lease, status, shares, entries, ...seconds] = replies as [
    string | null,
    string | null,
    string[],
    Look['entries'] | null,
    ...(string | null)[],
  ];
  return {
    ...{ lease, status, entries: entries ?? [] },
    shares: pairsOf(shares),
    seconds: seconds.map((text) => (text === null ? null : linesOf(text))),
  };
}

function pairsOf(list: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (let i = 0; i < list.length; i += 2) pairs[list[i]!] = list[i + 1]!;
  return pairs;
}

function linesOf(text: string): TrafficLines {
  const lines = text.split('\n');
  return { mark: lines.shift()!, lines };
}
