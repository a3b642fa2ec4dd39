/** `flyball tail`: a sample of the decisions that services take, as they take them, for a while. Stage: cli. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { EXIT } from '../errors.js';
import { type LimiterKeys, limiterKeys } from '../redis/keys.js';
import {
  ASK_TTL_MS,
  type DecisionSample,
  readSample,
  SAMPLE_FIELD,
  type TailAsk,
} from '../redis/tail-fields.js';
import { createInterrupt } from './interrupt.js';
import { parseSpan } from './options.js';
import type { CliIo } from './output.js';
import { findLimiter, type Session, withRedis } from './session.js';
import { createTailView } from './tail-view.js';
import { clean, number, span } from './text.js';

interface TailFlags {
  ratio: number;
  for: number;
  hashSubjects?: boolean;
}

const READ_EVERY_MS = 250;
const READ_AT_ONCE = 1_000;
const RENEW_EVERY_MS = 1_000;
/** Services send once a second: what was sampled last comes after the end. */
const LAST_ONES_MS = 1_500;
const DAY_MS = 86_400_000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('tail')
      .description('Watch a sample of the decisions: what was asked, the answer and why.')
      .argument('<limiter>')
      .option('--ratio <share>', 'share of the decisions, above 0, at most 1', parseRatio, 0.01)
      .addOption(
        new Option('--for <span>', 'how long, 1s … 1d')
          .argParser(parseLength)
          .default(600_000, '10m'),
      )
      .option('--hash-subjects', 'services send hashes instead of subjects')
      .addHelpText(
        'before',
        `Examples:
  flyball tail checkout --ratio 0.01 --for 10m
  flyball tail checkout --ratio 1 --for 30s --hash-subjects
  flyball tail checkout --json | jq 'select(.allowed == false)'
`,
      )
      .action(async (limiter: string, flags: TailFlags) => {
        await withRedis(io, (session) => tail(io, session, limiter, flags));
      }),
  );
}

function parseRatio(text: string): number {
  const ratio = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (ratio > 0 && ratio <= 1) return ratio;
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no share. Write a number above 0, at most 1: 0.01 is one decision in a hundred.`,
  );
}

function parseLength(text: string): number {
  const ms = parseSpan(text);
  if (ms <= DAY_MS) return ms;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is longer than 1d.`);
}

async function tail(io: CliIo, session: Session, limiter: string, flags: TailFlags): Promise<void> {
  const keys = limiterKeys(await findLimiter(session, limiter));
  const { redis } = session;
  const asker = `${process.pid}-${randomBytes(4).toString('hex')}`;
  const salt = flags.hashSubjects ? randomBytes(16).toString('hex') : '';
  const view = createTailView(io, flags.ratio);
  const interrupt = createInterrupt();
  const clock = await redisClock(session);
  const endMs = clock() + flags.for;
  const newest = await redis.xrevrange(keys.samples, '+', '-', 'COUNT', 1);
  let lastId = newest[0]?.[0] ?? '0-0';
  let askAgainMs = 0;

  /** Asked for a few seconds at a time: services stop soon after a tail that was killed, too. */
  async function ask(): Promise<void> {
    if (clock() < askAgainMs || clock() >= endMs) return;
    askAgainMs = clock() + RENEW_EVERY_MS;
    const untilMs = Math.min(endMs, clock() + ASK_TTL_MS);
    const wish: TailAsk = { ratio: flags.ratio, untilMs, salt };
    await redis
      .pipeline()
      .hset(keys.tail, asker, JSON.stringify(wish))
      .pexpire(keys.tail, ASK_TTL_MS)
      .exec();
  }

  async function read(): Promise<void> {
    const reply = await redis.xread('COUNT', READ_AT_ONCE, 'STREAMS', keys.samples, lastId);
    const entries = reply?.[0]?.[1] ?? [];
    lastId = entries.at(-1)?.[0] ?? lastId;
    view.show(entries.flatMap(([, fields]) => sampleOf(fields)));
  }

  io.say(
    io.ce.dim(
      `${number(flags.ratio * 100)} % of the decisions of ${clean(limiter)} for ${span(flags.for)}; Ctrl-C ends it.`,
    ),
  );
  try {
    while (!interrupt.signal.aborted && clock() < endMs + LAST_ONES_MS) {
      await ask();
      await read();
      await delay(READ_EVERY_MS, undefined, { signal: interrupt.signal }).catch(() => {});
    }
  } finally {
    interrupt.release();
    await withdraw(session, keys, asker);
  }
  view.end(interrupt.signal.aborted);
  if (interrupt.signal.aborted) io.exitCode = EXIT.interrupted;
}

/** With the last asker the key is gone. */
async function withdraw({ redis }: Session, keys: LimiterKeys, asker: string): Promise<void> {
  await redis.hdel(keys.tail, asker);
}

/** Redis's time in ms, asked once; a tail's length does not hang on this machine's clock. */
async function redisClock({ redis }: Session): Promise<() => number> {
  const [seconds, micros] = await redis.time();
  const offsetMs = Number(seconds) * 1000 + Number(micros) / 1000 - performance.now();
  return () => Math.floor(offsetMs + performance.now());
}

function sampleOf(fields: readonly string[]): DecisionSample[] {
  const text = fields[fields.indexOf(SAMPLE_FIELD) + 1];
  const sample = text === undefined ? null : readSample(text);
  return sample === null ? [] : [sample];
}
