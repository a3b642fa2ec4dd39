/** The last sources of a limiter's policy, each under its hash with who adopted it and when. Stage: actuate, cli. */
import type { LimiterKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { sourceScript } from './scripts.gen.js';
import { fieldOf, storedMs } from './stream-id.js';

const SOURCES_KEPT = 20;
/** A policy that is no longer among them is kept for `explain` this long, as the roll-ups are. */
const FELL_OUT_MS = 8 * 86_400_000;
/** A longer text is not kept: the policy's plain data are, anyway. */
const LONGEST_TEXT = 65_536;

export interface SourceMeta {
  /** Who adopted it. */
  by: string;
  kind: 'autopilot' | 'person';
  /** The file, as who adopted it names it. */
  file: string;
  epoch: number;
  revision: number;
  /** The file's text; null: not known, or too long. */
  text: string | null;
}

export interface PolicySource extends SourceMeta {
  hash: string;
  /** Redis time. */
  atMs: number;
}

/** Keeps it as the newest. What fell out ends in some days; what is newest already is left as it is. */
export async function keepSource(
  redis: RedisClient,
  keys: LimiterKeys,
  hash: string,
  meta: SourceMeta,
): Promise<void> {
  const text = meta.text !== null && meta.text.length <= LONGEST_TEXT ? meta.text : null;
  const fell = (await runScript(redis, {
    script: sourceScript,
    keys: [keys.sources],
    args: [hash, JSON.stringify({ ...meta, text }), SOURCES_KEPT],
  })) as string[];
  for (const old of fell) {
    if (old !== '') await redis.pexpire(keys.policyVersion(old), FELL_OUT_MS);
  }
}

/** Newest first; what nothing of ours wrote is left out. */
export async function readSources(redis: RedisClient, keys: LimiterKeys): Promise<PolicySource[]> {
  const entries = await redis.xrevrange(keys.sources, '+', '-', 'COUNT', SOURCES_KEPT);
  return entries.flatMap(([id, fields]) => {
    const source = readSource(id, fields);
    return source === null ? [] : [source];
  });
}

function readSource(id: string, fields: readonly string[]): PolicySource | null {
  const hash = fieldOf(fields, 'hash');
  try {
    const meta = JSON.parse(fieldOf(fields, 'meta')) as Partial<SourceMeta> | null;
    if (hash === '' || typeof meta?.by !== 'string') return null;
    const { by, kind, file = '', epoch = 0, revision = 0, text = null } = meta;
    const from = { kind: kind === 'person' ? ('person' as const) : ('autopilot' as const) };
    return { hash, atMs: storedMs({ id }), by, ...from, file, epoch, revision, text };
  } catch {
    return null;
  }
}
