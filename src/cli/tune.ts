/** `flyball tune`: what the history of a limiter recommends, beside what is in force, with reasons; `--apply` sets it. Stage: cli. */
import { type Command, InvalidArgumentError } from 'commander';
import {
  DEFAULT_SINCE_MS,
  factsOf,
  type LastRun,
  readLastRun,
  recommendFromHistory,
} from '../actuate/tuning.js';
import { readFacts } from '../actuate/verbs/apply.js';
import type { Facts } from '../actuate/verbs/plan.js';
import { obstacle, tune } from '../actuate/verbs/tune.js';
import { EXIT, FlyballError } from '../errors.js';
import { durationMs } from '../policy/units.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { ServiceFacts } from '../tune/from-history.js';
import type { NoRecommendation, Recommendation } from '../tune/recommend.js';
import { scheduleOf } from '../tune/schedule.js';
import { actorName, type ChangeFlags, changing, runChange } from './change.js';
import { parseCount, parseSpan } from './options.js';
import type { CliIo } from './output.js';
import { findLimiter, type Session, withRedis } from './session.js';
import { clean, span } from './text.js';
import { tuneText } from './tune-text.js';

interface TuneFlags extends Omit<ChangeFlags, 'hold' | 'for'> {
  since?: number;
  apply?: boolean;
  slots?: number;
  instances?: number;
  connections?: number;
  /** Of a connection, ms. */
  hold?: number;
}

const EIGHT_DAYS_MS = 8 * 86_400_000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    changing(
      'tune',
      'What the history of a limiter recommends, and why; --apply puts it in force.',
      `  flyball tune checkout                      recommended beside in force, nothing is written
  flyball tune checkout --slots 4 --connections 20 --hold 15ms
  flyball tune checkout --since 3d --json
  flyball tune checkout --apply              asks first; mode auto only, within the bounds`,
    )
      .argument('<limiter>')
      .option('--since <span>', "how far back, 1d … 8d (default: the policy's, else 7d)", parseBack)
      .option('--apply', 'put it in force')
      .option('--slots <n>', 'requests that one instance serves at a time', parseCount)
      .option('--instances <n>', 'instances of the service', parseCount)
      .option('--connections <n>', 'database connections of all instances together', parseCount)
      .option('--hold <time>', 'how long a request holds a connection, on average', parseTime)
      .action(async (limiter: string, flags: TuneFlags) => {
        if (!flags.apply) return withRedis(io, (session) => show(io, session, limiter, flags));
        const { hold: _ofConnections, ...asked } = flags;
        await runChange(io, limiter, asked, async (session, address) => {
          const { found } = await look(session, address, flags);
          if (found.status === 'refused') {
            throw new FlyballError('FLYBALL_E_TUNE_HISTORY', `${limiter}: ${found.sentence}`);
          }
          return tune(found);
        });
      }),
  );
}

async function look(
  session: Session,
  address: LimiterAddress,
  flags: TuneFlags,
): Promise<{ facts: Facts; found: Recommendation | NoRecommendation; sinceMs: number }> {
  const facts = await readFacts(session.redis, address, { actor: actorName() });
  const { policy, params, nowMs } = facts;
  if (policy === null) {
    throw new FlyballError(
      'FLYBALL_E_LIMITER_UNMANAGED',
      `the adopted policy of ${address.name} cannot be read, so its bounds are not known. \`flyball run\` adopts it.`,
    );
  }
  const sinceMs = flags.since ?? policy.tune?.since ?? DEFAULT_SINCE_MS;
  const own = factsOf(policy);
  const service: ServiceFacts = {
    slotsPerInstance: flags.slots ?? own.slotsPerInstance,
    instances: flags.instances ?? own.instances,
    connections: flags.connections ?? own.connections,
    holdMs: flags.hold ?? own.holdMs,
  };
  const of = { policy, params, nowMs, sinceMs, facts: service };
  return { facts, sinceMs, found: await recommendFromHistory(session.redis, address, of) };
}

async function show(io: CliIo, session: Session, limiter: string, flags: TuneFlags): Promise<void> {
  const address = await findLimiter(session, limiter);
  const { facts, found, sinceMs } = await look(session, address, flags);
  const last = await readLastRun(session.redis, address);
  if (found.status === 'refused') io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({ limiter, sinceMs, mode: facts.params.mode, ...found, lastRun: last });
    return;
  }
  if (found.status === 'refused') {
    io.out(`${clean(limiter)}: no recommendation. ${found.sentence}`);
  } else {
    io.out(tuneText(io, limiter, found, facts));
  }
  io.say(io.ce.dim(scheduleText(facts, last)));
  if (found.status === 'refused') return;
  const blocked = obstacle(facts, found);
  const hint = blocked ?? `\`flyball tune ${limiter} --apply\` puts it in force.`;
  io.say(io.ce.dim(clean(hint)));
}

function scheduleText({ policy, nowMs }: Facts, last: LastRun | null): string {
  const schedule = scheduleOf(policy?.tune);
  const zone = policy?.tune?.timezone ?? 'UTC';
  const on = schedule === null ? 'No schedule.' : `By schedule: ${schedule}, ${zone}.`;
  if (last === null) return on;
  return `${on} Last ${span(Math.max(0, nowMs - last.atMs))} ago: ${last.outcome}. ${clean(last.sentence)}`;
}

function parseBack(text: string): number {
  const ms = parseSpan(text);
  if (ms < 86_400_000 || ms > EIGHT_DAYS_MS) {
    throw new InvalidArgumentError(
      `${span(ms)} is not within 1d … 8d: a day's peak must be in it, and 8 days are kept.`,
    );
  }
  return ms;
}

function parseTime(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined || !(ms >= 0.001 && ms <= 3_600_000)) {
    throw new InvalidArgumentError(`${JSON.stringify(text)} is no time. Write 15ms or 1.5s.`);
  }
  return ms;
}
