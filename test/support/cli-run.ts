/** Runs CLI command lines: in this process with captured streams, or as the built program; and seeds a limiter to act on. */
import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { readParams, write } from '../../src/actuate/actuator.js';
import { runCli } from '../../src/cli/program.js';
import { fleetKeys, type LimiterAddress } from '../../src/redis/keys.js';
import type { ParamChange, Params } from '../../src/redis/params.js';
import { CREATED } from './cli-params.js';

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface CliRun {
  code: number;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  env?: NodeJS.ProcessEnv;
  /** Terminals on all three streams; what is typed when the first question is asked. */
  typed?: string;
}

/** In this process: quick, and the streams can claim to be terminals. */
export async function cli(args: string[], options: CliOptions = {}): Promise<CliRun> {
  const isTTY = options.typed !== undefined;
  const stream = () => Object.assign(new PassThrough(), { isTTY, columns: 200 });
  const [stdin, stdout, stderr] = [stream(), stream(), stream()];
  let out = '';
  let err = '';
  stdout.on('data', (chunk) => {
    out += chunk;
  });
  stderr.on('data', (chunk) => {
    err += chunk;
    if (String(chunk).includes('[y/N]') && options.typed !== undefined) stdin.write(options.typed);
  });
  const code = await runCli(args, {
    stdin,
    stdout,
    stderr,
    env: { NO_COLOR: '1', ...options.env },
  });
  return { code, stdout: out, stderr: err };
}

/** As people run it: the built program, its own process, no terminal. */
export function cliProcess(args: string[], env: NodeJS.ProcessEnv = {}): Promise<CliRun> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((ok, no) => {
    child.once('error', no);
    child.once('close', (code) => ok({ code: code ?? -1, stdout, stderr }));
  });
}

/** A limiter as a daemon would have created it, registered, with no daemon alive. */
export async function seedLimiter(
  redis: Redis,
  address: LimiterAddress,
  change: ParamChange = {},
): Promise<void> {
  const reply = await write(
    redis,
    address,
    {
      authority: { kind: 'person' },
      expected: { epoch: 1, revision: 1 },
      create: true,
      change: { ...CREATED, ...change },
      cause: 'policy',
      actor: { kind: 'autopilot', name: 'seed' },
      reason: 'params_created',
      sentence: `${address.name} begins.`,
      before: null,
      after: { mode: 'auto', state: 'closed', rate: 100, capacity: 200, inFlightMax: 24 },
      policyHash: CREATED.policyHash,
    },
    { leaseMs: 0, nowMs: Date.now() },
  );
  if (reply.status !== 'ok') throw new Error(`not seeded: ${JSON.stringify(reply)}`);
  await redis.hset(fleetKeys(address.prefix).limiters, address.name, address.group ?? '');
}

/** A change as a law with the lease would make it. */
export async function lawWrite(
  redis: Redis,
  address: LimiterAddress,
  authority: { kind: 'lease'; owner: string; token: number },
  change: ParamChange,
  law?: string,
) {
  const params = await mustRead(redis, address);
  const values = (p: ParamChange) => ({
    mode: params.mode,
    state: p.state ?? params.state,
    rate: p.rate ?? params.rate,
    capacity: p.capacity ?? params.capacity,
    inFlightMax: p.inFlightMax ?? params.inFlightMax,
  });
  return write(
    redis,
    address,
    {
      authority,
      expected: { epoch: params.epoch, revision: params.revision },
      change,
      cause: 'law',
      actor: { kind: 'autopilot', name: authority.owner },
      reason: 'law_raise',
      sentence: `rate → ${change.rate}/s.`,
      ...(law === undefined ? {} : { law }),
      before: values({}),
      after: values(change),
      policyHash: params.policyHash,
    },
    { leaseMs: 5000, nowMs: Date.now() },
  );
}

export async function mustRead(redis: Redis, address: LimiterAddress): Promise<Params> {
  const { params } = await readParams(redis, address);
  if (params === null) throw new Error(`${address.name} has no params`);
  return params;
}
