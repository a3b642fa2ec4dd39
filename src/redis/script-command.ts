/** EVALSHA as one ready-made buffer: a batch has a thousand arguments, and each costs less so. Stage: enforce, actuate. */
import { Cluster, Command, Redis } from 'ioredis';
import type { RedisClient, ScriptCall } from './run-script.js';

const CR = 13;
const LF = 10;
const DOLLAR = 36;
const ASTERISK = 42;
const ZERO = 48;
/** `$`, up to seven digits of a length, and two line ends. */
const AROUND = 12;

/**
 * The command for `sendCommand`, or null when it must go the ordinary way: a client of another copy of ioredis, one
 * that prefixes keys, or text beyond ASCII. ioredis sees the first key alone, which is all that routing needs.
 */
export function scriptCommand(redis: RedisClient, call: ScriptCall): Command | null {
  if (!takesCommands(redis)) return null;
  const { script, keys, args } = call;
  const count = String(keys.length);
  const texts = [script.sha, count, ...keys];
  for (const arg of args) texts.push(typeof arg === 'string' ? arg : String(arg));
  const bytes = encode(texts);
  if (bytes === null) return null;
  const command = new Command('evalsha', [script.sha, '1', keys[0]!], { replyEncoding: 'utf8' });
  command.toWritable = () => bytes;
  return command;
}

const known = new WeakMap<RedisClient, boolean>();

function takesCommands(redis: RedisClient): boolean {
  let takes = known.get(redis);
  if (takes === undefined) {
    const ours = redis instanceof Redis || redis instanceof Cluster;
    takes = ours && !redis.options.keyPrefix;
    known.set(redis, takes);
  }
  return takes;
}

/** RESP of `EVALSHA` and these arguments; null when one is not ASCII. */
function encode(texts: readonly string[]): Buffer | null {
  let size = 32;
  for (let i = 0; i < texts.length; i++) size += texts[i]!.length + AROUND;
  const bytes = Buffer.allocUnsafe(size);
  let at = writeLength(bytes, 0, ASTERISK, texts.length + 1);
  at = writeText(bytes, at, 'evalsha');
  for (let i = 0; i < texts.length; i++) {
    at = writeText(bytes, at, texts[i]!);
    if (at < 0) return null;
  }
  return bytes.subarray(0, at);
}

function writeText(bytes: Buffer, from: number, text: string): number {
  const { length } = text;
  let at = writeLength(bytes, from, DOLLAR, length);
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return -1;
    bytes[at++] = code;
  }
  bytes[at] = CR;
  bytes[at + 1] = LF;
  return at + 2;
}

function writeLength(bytes: Buffer, from: number, sign: number, length: number): number {
  let at = from;
  bytes[at++] = sign;
  let unit = 1;
  while (length >= unit * 10) unit *= 10;
  for (; unit >= 1; unit /= 10) bytes[at++] = ZERO + (Math.floor(length / unit) % 10);
  bytes[at] = CR;
  bytes[at + 1] = LF;
  return at + 2;
}
