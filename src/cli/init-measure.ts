/** Which of the Redis servers answers, and the measuring of `init --fit` with a line of progress; Ctrl-C takes what was seen. Stage: cli. */
import { awaitRedis, connect, type RedisClient } from '../redis/connect.js';
import { fleetKeys } from '../redis/keys.js';
import { resolvePrefix } from '../redis/locate.js';
import type { Chosen, InitFlags } from './init-choose.js';
import { measure } from './init-fit.js';
import type { Fit } from './init-size.js';
import { type FoundRedis, isGuess, type Surroundings } from './init-surroundings.js';
import { createInterrupt } from './interrupt.js';
import { type CliIo, UsageError } from './output.js';
import { number, span } from './text.js';

/** Candidates are guesses: one that is away must not cost a person their patience. */
const PROBE_MS = 1000;

export interface Measured {
  redis: (FoundRedis & { answers: boolean }) | null;
  /** null: not asked for. */
  fit: Fit | null;
}

export async function measuredFor(
  io: CliIo,
  around: Surroundings,
  chosen: Chosen,
  flags: InitFlags,
): Promise<Measured> {
  const { found, client } = await firstThatAnswers(io, around.redis);
  try {
    tellFound(io, around, chosen, found, client !== null);
    const redis = found && { ...found, answers: client !== null };
    if (flags.fit === undefined) return { redis, fit: null };
    return { redis, fit: await fitted(io, client, chosen, { ...flags, fit: flags.fit }) };
  } finally {
    client?.disconnect();
  }
}

/** Without an answer the likeliest is named all the same: it may only not run here. */
async function firstThatAnswers(io: CliIo, candidates: readonly FoundRedis[]) {
  for (const found of candidates) {
    const client = connect({ url: found.url, name: 'cli', env: io.env });
    client.on('error', () => {});
    try {
      // A refused connection is answer enough: to try again is for who needs this very server.
      const refused = new Promise<never>((_ok, no) => client.once('close', no));
      const { url } = found;
      await Promise.race([awaitRedis(client, { url, deadlineMs: PROBE_MS }), refused]);
      return { found, client };
    } catch {
      client.disconnect();
    }
  }
  return { found: candidates[0] ?? null, client: null };
}

function tellFound(
  io: CliIo,
  around: Surroundings,
  { framework, database }: Chosen,
  redis: FoundRedis | null,
  answers: boolean,
): void {
  const why =
    framework === around.framework ? (around.frameworkFrom ?? 'none was found') : 'as said';
  // Where an address is given, `run` uses it or fails.
  const mend =
    redis && !isGuess(redis) ? 'start it before flyball run' : 'flyball run brings a private one';
  const state = answers ? 'answers' : `does not answer now; ${mend}`;
  io.say(io.ce.dim(`framework  ${framework} (${why})`));
  if (redis) io.say(io.ce.dim(`redis      ${redis.shown} (${redis.from}): ${state}`));
  io.say(
    io.ce.dim(
      database
        ? `database   ${database.kind}, by ${database.variable} (${database.from})`
        : 'database   none',
    ),
  );
}

async function fitted(
  io: CliIo,
  redis: RedisClient | null,
  { name, database }: Chosen,
  flags: InitFlags & { fit: number },
): Promise<Fit> {
  if (redis === null && !database?.url && flags.metrics === undefined) {
    throw new UsageError(
      'there is nothing to measure: no Redis answers, no address of a database is known, and no page is named.',
      'Give --redis, a variable with --database, or --metrics; or leave --fit out.',
    );
  }
  const prefix = resolvePrefix(io.globals.prefix, io.env);
  const group = await redis?.hget(fleetKeys(prefix).limiters, name).catch(() => null);
  const interrupt = createInterrupt();
  io.say(`Measuring for ${span(flags.fit)}; Ctrl-C goes on with what was seen.`);
  try {
    return await measure({
      ...{ redis, address: { name, group: group || undefined, prefix }, database },
      page: flags.metrics === undefined ? null : { url: flags.metrics, metric: flags.metric },
      ...{ forMs: flags.fit, signal: interrupt.signal, env: io.env },
      onSecond: ({ requests, perSecond, p95Ms }, leftMs) => {
        const rate = perSecond === null ? 'no requests yet' : `${number(perSecond)}/s`;
        const p95 = p95Ms === null ? '' : `, p95 ${number(p95Ms)} ms`;
        io.progress(`${requests} requests, ${rate}${p95}, ${span(leftMs)} left`);
      },
    });
  } finally {
    io.progress('');
    interrupt.release();
  }
}
