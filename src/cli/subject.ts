/** `flyball subject`: what a person says of one subject (blocked, exempt, numbers of its own), and what is said of whom. Stage: cli. */
import { type Command, Option } from 'commander';
import { readFacts } from '../actuate/verbs/apply.js';
import type { HoldFor } from '../actuate/verbs/plan.js';
import { ruleText, type SubjectWish, subject } from '../actuate/verbs/subject.js';
import { inForceAt, MAX_OVERRIDES, type SubjectOverride } from '../redis/subject-override.js';
import { actorName, type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import { parseNumber } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { hold } from './preview.js';
import { findLimiter, withRedis } from './session.js';
import { clean } from './text.js';

interface SubjectFlags extends ChangeFlags {
  capacity?: number;
  rate?: number;
  block?: boolean;
  exempt?: boolean;
  clear?: boolean;
}

/** Longer ones are told apart by their hash alone, which no person types. */
const LONGEST = 1_000;

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'subject',
    'Block one subject, exempt it, or give it numbers of its own for a while; without a subject: what is said of whom.',
    `  flyball subject checkout                               what is said of whom
  flyball subject checkout user:42 --block --for 2h --reason "scraping"
  flyball subject checkout user:42 --capacity 500 --rate 20 --yes
  flyball subject checkout user:42 --exempt --hold       until a person ends it
  flyball subject checkout user:42 --clear`,
  )
    .argument('<limiter>')
    .argument('[subject]', 'as the service names it: user:42')
    .option('--capacity <n>', 'most tokens its bucket holds', parseNumber)
    .option('--rate <n>', 'tokens per second that fill it', parseNumber)
    .addOption(
      new Option('--block', 'deny all it asks for').conflicts([
        'exempt',
        'clear',
        'capacity',
        'rate',
      ]),
    )
    .addOption(
      new Option('--exempt', 'deny nothing, but while the breaker is open').conflicts([
        'clear',
        'capacity',
        'rate',
      ]),
    )
    .addOption(
      new Option('--clear', 'take back what was said of it').conflicts([
        'capacity',
        'rate',
        'for',
        'hold',
      ]),
    );
  holding(command, '1s … 365d (default 1h)').action(
    async (limiter: string, name: string | undefined, flags: SubjectFlags) => {
      if (name === undefined) return list(io, limiter, flags);
      const wish = wishOf(limiter, name, flags);
      const holdFor: HoldFor = holdOf(flags);
      await runChange(io, limiter, flags, () => subject(wish, holdFor));
    },
  );
  program.addCommand(command);
}

function wishOf(limiter: string, name: string, flags: SubjectFlags): SubjectWish {
  const { capacity, rate, block, exempt, clear, reason } = flags;
  if (name === '' || name.length > LONGEST) {
    throw new UsageError(
      `the subject has ${name.length} characters; 1 … ${LONGEST} are allowed.`,
      'Name it as the service does: user:42.',
    );
  }
  const base = { subject: name, why: reason };
  if (clear) return { ...base, kind: 'clear' };
  if (block) return { ...base, kind: 'block' };
  if (exempt) return { ...base, kind: 'exempt' };
  if (capacity === undefined && rate === undefined) {
    throw new UsageError(
      `say what shall hold for ${clean(name.slice(0, 100))}: --capacity, --rate, --block, --exempt or --clear.`,
      `What is said of whom: flyball subject ${clean(limiter)}.`,
    );
  }
  return { ...base, kind: 'limit', capacity, rate };
}

async function list(io: CliIo, limiter: string, flags: SubjectFlags): Promise<void> {
  const given = ['capacity', 'rate', 'block', 'exempt', 'clear', 'for', 'hold'] as const;
  const flag = given.find((each) => flags[each] !== undefined);
  if (flag !== undefined) {
    throw new UsageError(
      `--${flag} is for one subject, and none is named.`,
      `Name it: flyball subject ${clean(limiter)} user:42 --${flag}.`,
    );
  }
  await withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const { params, nowMs, overrides } = await readFacts(session.redis, address, {
      actor: actorName(),
    });
    const all = [...(overrides?.values() ?? [])]
      .filter((each) => inForceAt(each, nowMs))
      .sort((a, b) => (a.subject < b.subject ? -1 : 1));
    if (io.flags.json) {
      io.json({
        limiter,
        atMs: nowMs,
        revision: params.revision,
        overrides: all.map(record),
        most: MAX_OVERRIDES,
      });
    } else if (all.length === 0) {
      io.say(`Nothing is said of single subjects at ${clean(limiter)}.`);
    } else {
      io.out(io.table(['SUBJECT', 'RULE', 'ENDS', 'BY', 'REVISION', 'REASON'], rows(all, nowMs)));
    }
  });
}

function rows(all: readonly SubjectOverride[], nowMs: number): string[][] {
  return all.map((each) => [
    clean(each.subject),
    ruleText(each),
    hold(each.untilMs, nowMs),
    clean(each.by),
    `r${each.revision}`,
    clean(each.why),
  ]);
}

function record({ subject, kind, untilMs, rate, capacity, by, why, revision }: SubjectOverride) {
  return {
    ...{ subject, kind, rate, capacity, by, revision },
    reason: why === '' ? null : why,
    untilMs: untilMs === -1 ? null : untilMs,
  };
}
