/** Writes raw calls of the scripts to a golden file, with what a fresh server answers: for clients in any language. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ScriptCall } from '../../src/redis/run-script.js';
import type { Script } from '../../src/redis/scripts.gen.js';
import { startRedis } from '../support/redis-server.js';
import type { GoldenPart } from './golden-parts.js';

export const T0 = 1_700_000_000_000_000;
export const S = 1_000_000;
/** The limiter that the calls are of, and what they say for one without params. */
export const keys = limiterKeys({ name: 'golden' });
export const FALLBACK = '10 20 8 2 4';
/** Virtual time (µs), so many seconds after the params were made. */
export const at = (atS: number) => T0 + Math.round(atS * S);

const server = await startRedis();
export const redis = server.client();
const parts: GoldenPart[] = [];

/** A server with these params (none unless set up); the steps that follow belong to it. */
export async function given(setUp: () => Promise<unknown>): Promise<void> {
  await redis.flushall();
  await setUp();
  // In one order, since Redis gives another each time.
  const hash = Object.fromEntries(Object.entries(await redis.hgetall(keys.params)).sort());
  const hot = (await redis.hgetBuffer(keys.params, 'hot'))?.toString('base64') ?? '';
  parts.push({ params: hash.v === undefined ? null : { ...hash, hot }, steps: [] });
}

export async function step(
  what: string,
  script: Script<never, never>,
  names: string[],
  args: string[],
): Promise<void> {
  const reply = await redis.eval(script.lua, names.length, ...names, ...args);
  parts.at(-1)!.steps.push({ what, script: script.name, keys: names, args, reply });
}

/** A call as the SDK makes it. */
export function send(what: string, { script, keys: names, args }: ScriptCall): Promise<void> {
  return step(what, script as never, names, args.map(String));
}

/** All that was recorded, into a file beside this one. */
export async function write(file: string): Promise<void> {
  writeFileSync(join(import.meta.dirname, file), `${JSON.stringify(parts, null, 1)}\n`);
  await server.stop();
}
