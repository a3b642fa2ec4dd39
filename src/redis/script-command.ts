/** EVALSHA as ready-made bytes: a batch has a thousand arguments, and each costs less so. Stage: enforce, actuate. */
import { Cluster, Command, Redis } from 'ioredis';
import type { RedisClient, ScriptCall } from './run-script.js';

/** `$`, its length and the line end, of texts up to here: most keys and arguments. */
const HEADS = Array.from({ length: 128 }, (_each, length) => `\r\n$${length}\r\n`);

/**
 * The command for `sendCommand`, or null when it must go the ordinary way: a client of another copy of ioredis, one
 * that prefixes keys, or text beyond ASCII. ioredis sees the first key alone, which is all that routing needs.
 */
export function scriptCommand(redis: RedisClient, call: ScriptCall): Command | null {
  if (!takesCommands(redis)) return null;
  const { script, keys, args, packed } = call;
  const bytes = encode(script.sha, keys, args);
  if (bytes === null) return null;
  const replyEncoding = packed ? null : 'utf8';
  const command = new Command('evalsha', [script.sha, '1', keys[0]!], { replyEncoding });
  command.toWritable = () => bytes;
  return command;
}

const known = new WeakMap<RedisClient, boolean>();

/** Can this client be given a command of ours, and told to leave the reply's strings as bytes? */
export function takesCommands(redis: RedisClient): boolean {
  let takes = known.get(redis);
  if (takes === undefined) {
    const ours = redis instanceof Redis || redis instanceof Cluster;
    takes = ours && !redis.options.keyPrefix;
    known.set(redis, takes);
  }
  return takes;
}

/**
 * RESP of `EVALSHA` and these arguments; null when one is not ASCII. One long text written at once: to copy it
 * character by character costs five times as much.
 */
function encode(
  sha: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Buffer | null {
  let text = `*${keys.length + args.length + 3}\r\n$7\r\nevalsha\r\n$${sha.length}\r\n${sha}`;
  text += framed(String(keys.length));
  for (let i = 0; i < keys.length; i++) text += framed(keys[i]!);
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    text += framed(typeof arg === 'string' ? arg : String(arg));
  }
  text += '\r\n';
  const { length } = text;
  return Buffer.byteLength(text) === length ? Buffer.from(text, 'latin1') : null;
}

function framed(text: string): string {
  const { length } = text;
  return (length < HEADS.length ? HEADS[length]! : `\r\n$${length}\r\n`) + text;
}
