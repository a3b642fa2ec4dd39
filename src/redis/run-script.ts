/** Runs a script by its hash and heals a server that has forgotten it, with one load for many calls. Stage: enforce, actuate. */
import type { Cluster, Redis } from 'ioredis';
import { scriptCommand } from './script-command.js';
import type { Script, ScriptArg } from './scripts.gen.js';

export type RedisClient = Redis | Cluster;

/** One script call: what EVALSHA gets. */
export interface ScriptCall<
  Keys extends string[] = string[],
  Args extends ScriptArg[] = ScriptArg[],
> {
  script: Script<Keys, Args>;
  keys: Keys;
  args: Args;
  /** The reply holds bytes: its strings come as buffers. */
  packed?: boolean;
}

/** How often a script was loaded through a client, and the load under way. */
interface Loads {
  count: number;
  running: Promise<unknown> | null;
}

const loadsByClient = new WeakMap<RedisClient, Map<string, Loads>>();

/**
 * EVALSHA; on NOSCRIPT the first of the failed calls is sent again with the whole text, the others wait for it
 * and then go by hash. A call is sent at most twice, and NOSCRIPT means that it has done nothing: each takes
 * effect exactly once. (On a cluster another node may lack the script too: then its call carries the text.)
 * `read` makes of the reply what is wanted.
 */
export function runScript<Keys extends string[], Args extends ScriptArg[], Reply = unknown>(
  redis: RedisClient,
  call: ScriptCall<Keys, Args>,
  read: (raw: unknown) => Reply = asItIs,
): Promise<Reply> {
  const loads = loadsOf(redis, call.script.sha);
  const before = loads.count;
  return byHash(redis, call).then(read, (error) => {
    if (!isNoScript(error)) throw error;
    return heal(redis, call, loads, before).then(read);
  });
}

const asItIs = <Reply>(raw: unknown) => raw as Reply;

async function heal(
  redis: RedisClient,
  call: ScriptCall,
  loads: Loads,
  before: number,
): Promise<unknown> {
  if (loads.count === before && loads.running === null) return load(redis, call, loads);
  if (loads.running !== null) await loads.running.catch(() => {});
  try {
    return await byHash(redis, call);
  } catch (error) {
    if (!isNoScript(error)) throw error;
    return byText(redis, call);
  }
}

/**
 * Many calls in one pipeline, answered in order; those that met NOSCRIPT are sent once more, the first of them
 * with the whole text. Rejects with the first error that is not NOSCRIPT.
 */
export async function pipelineScripts(
  redis: RedisClient,
  calls: readonly ScriptCall[],
): Promise<unknown[]> {
  const replies = await pipelineOnce(redis, calls, new Set());
  const again = replies.flatMap(([error], index) => (isNoScript(error) ? [index] : []));
  if (again.length > 0) {
    const firstOfScript = new Set<number>();
    const seen = new Set<string>();
    for (const [position, index] of again.entries()) {
      const { sha } = calls[index]!.script;
      if (!seen.has(sha)) firstOfScript.add(position);
      seen.add(sha);
    }
    const retried = await pipelineOnce(
      redis,
      again.map((index) => calls[index]!),
      firstOfScript,
    );
    for (const [position, index] of again.entries()) replies[index] = retried[position]!;
  }
  return replies.map(([error, value]) => {
    if (error) throw error;
    return value;
  });
}

/**
 * The command to queue inside MULTI. It carries the whole text: a NOSCRIPT inside EXEC could not be healed
 * without running the rest of the transaction a second time.
 */
export function multiCommand(call: ScriptCall): [name: 'eval', ...args: ScriptArg[]] {
  return ['eval', call.script.lua, call.keys.length, ...call.keys, ...call.args];
}

async function pipelineOnce(
  redis: RedisClient,
  calls: readonly ScriptCall[],
  withText: ReadonlySet<number>,
): Promise<[error: Error | null, value: unknown][]> {
  const pipeline = redis.pipeline();
  for (const [index, { script, keys, args }] of calls.entries()) {
    if (withText.has(index)) pipeline.eval(script.lua, keys.length, ...keys, ...args);
    else pipeline.evalsha(script.sha, keys.length, ...keys, ...args);
  }
  return (await pipeline.exec()) ?? [];
}

function load(redis: RedisClient, call: ScriptCall, loads: Loads): Promise<unknown> {
  const running = byText(redis, call).finally(() => {
    loads.running = null;
    loads.count += 1;
  });
  loads.running = running;
  return running;
}

function byHash(redis: RedisClient, call: ScriptCall): Promise<unknown> {
  const command = scriptCommand(redis, call);
  if (command !== null) return redis.sendCommand(command) as Promise<unknown>;
  const { script, keys, args, packed } = call;
  if (packed) return bytesOf(redis).evalshaBuffer(script.sha, keys.length, ...keys, ...args);
  return redis.evalsha(script.sha, keys.length, ...keys, ...args);
}

/**
 * There, though its types do not say so. Not `callBuffer`: a client with `enableAutoPipelining` sends its first
 * argument as the command.
 */
interface BytesClient {
  evalBuffer(...args: ScriptArg[]): Promise<unknown>;
  evalshaBuffer(...args: ScriptArg[]): Promise<unknown>;
}

function bytesOf(redis: RedisClient): BytesClient {
  return redis as unknown as BytesClient;
}

function byText(redis: RedisClient, { script, keys, args, packed }: ScriptCall): Promise<unknown> {
  if (packed) return bytesOf(redis).evalBuffer(script.lua, keys.length, ...keys, ...args);
  return redis.eval(script.lua, keys.length, ...keys, ...args);
}

function loadsOf(redis: RedisClient, sha: string): Loads {
  let bySha = loadsByClient.get(redis);
  if (bySha === undefined) {
    bySha = new Map();
    loadsByClient.set(redis, bySha);
  }
  let loads = bySha.get(sha);
  if (loads === undefined) {
    loads = { count: 0, running: null };
    bySha.set(sha, loads);
  }
  return loads;
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
