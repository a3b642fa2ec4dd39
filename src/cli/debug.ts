/** `flyball debug`: why one subject is answered as it is, step by step in the order in which to look; it writes nothing. Stage: cli. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Priority } from '../redis/calls.js';
import { readDebug } from '../view/debug.js';
import type { DebugStep, DebugView } from '../view/debug-types.js';
import { wrap } from './entry-text.js';
import { type CliIo, type Colours, UsageError } from './output.js';
import { findLimiter, withRedis } from './session.js';
import { clean, localTime, number } from './text.js';

interface DebugFlags {
  cost: number;
  priority: Priority;
  route?: { method: string; path: string };
}

/** Longer ones are told apart by their hash alone, which no person types. */
const LONGEST = 1_000;

const NAMES: Record<DebugStep['step'], string> = {
  params: 'params',
  route: 'route',
  subject: 'subject',
  rollout: 'rollout',
  override: 'override',
  tier: 'tier',
  breaker: 'breaker',
  cost: 'cost',
  total: 'total',
  own_bucket: 'own bucket',
  fair_share: 'fair share',
  in_flight: 'in-flight cap',
  service: 'service',
};

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('debug')
      .description('Why one subject is answered as it is, step by step; it writes nothing.')
      .argument('<limiter>')
      .argument('<subject>', 'as the service names it: user:42')
      .option('--cost <tokens>', 'of the take that is asked for', parseCost, 1)
      .addOption(
        new Option('--priority <priority>', 'of that take')
          .choices(['critical', 'default', 'sheddable'])
          .default('default'),
      )
      .option('--route <request>', "also to whom a request comes: 'POST /api/pay'", parseRequest)
      .addHelpText(
        'before',
        `Examples:
  flyball debug checkout user:42                       would a take pass now, and what decides it
  flyball debug checkout user:42 --cost 5 --priority sheddable
  flyball debug checkout user:42 --route 'POST /api/pay'
  flyball debug checkout user:42 --json
`,
      )
      .action(async (limiter: string, subject: string, flags: DebugFlags) => {
        if (subject === '' || subject.length > LONGEST) {
          throw new UsageError(
            `the subject has ${subject.length} characters; 1 … ${LONGEST} are allowed.`,
            'Name it as the service does: user:42.',
          );
        }
        await withRedis(io, async (session) => {
          const address = await findLimiter(session, limiter);
          const { cost, priority, route: request } = flags;
          show(io, await readDebug(session, address, { subject, cost, priority, request }));
        });
      }),
  );
}

function show(io: CliIo, view: DebugView): void {
  if (io.flags.json) {
    io.json({ ...view });
    return;
  }
  const { c } = io;
  const asked = `a take of ${number(view.cost)}, priority ${view.priority}`;
  io.out(`${c.bold(clean(view.limiter))}  ${c.bold(clean(view.subject))}  ${asked}`);
  for (const [i, step] of view.steps.entries()) io.out(stepText(io, step, i + 1));
  if (view.answer !== null) {
    const { passes, sentence } = view.answer;
    io.out(`${passes ? c.green('passes') : c.red('denied')}  ${clean(sentence)}`);
  }
  if (view.recent !== null) {
    const { tokens, denied } = view.recent;
    io.out(
      `${c.dim('last 5 min')}  ${number(tokens ?? 0)} tokens taken, ${number(denied ?? 0)} times denied, at least`,
    );
  }
  for (const sample of view.samples) {
    const answer = sample.allowed ? c.green('admitted') : c.red('denied');
    const when = c.dim(localTime(sample.atMs).slice(11));
    io.out(
      `${when}  ${answer} ${clean(sample.reason)}, ${number(sample.remaining)} left, cost ${number(sample.cost)}, by ${clean(sample.source)} of ${clean(sample.process)}`,
    );
  }
  io.say(c.dim(hint(view)));
}

/** ` 7  denies  own bucket     0 tokens left, …`. */
function stepText(
  { c, columns }: CliIo,
  { step, verdict, sentence }: DebugStep,
  at: number,
): string {
  const lead = `${String(at).padStart(2)}  ${paint(c, verdict)(verdict.padEnd(6))}  ${c.dim(NAMES[step].padEnd(13))}  `;
  const indent = ' '.repeat(27);
  const lines = wrap(clean(sentence), Math.max(40, columns - indent.length));
  return lines.map((line, i) => `${i === 0 ? lead : indent}${line}`).join('\n');
}

function paint(c: Colours, verdict: DebugStep['verdict']): (text: string) => string {
  if (verdict === 'denies') return c.red;
  if (verdict === 'look') return c.yellow;
  return verdict === 'admits' ? c.green : c.dim;
}

function hint({ limiter, samples, answer }: DebugView): string {
  const name = clean(limiter);
  if (answer === null) return `What services know of it: flyball status ${name}.`;
  if (samples.length > 0) return `More of its decisions: flyball tail ${name} --ratio 1 --for 30s.`;
  return `No sampled decision of it. While flyball tail ${name} --ratio 1 --for 30s runs, services send theirs.`;
}

function parseCost(text: string): number {
  if (/^(0|[1-9]\d*)(\.\d{1,6})?$/.test(text) && text.length <= 16 && Number(text) > 0) {
    return Number(text);
  }
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no cost. Write tokens above 0 plainly, at most 6 decimals: 1 or 2.5.`,
  );
}

function parseRequest(text: string): { method: string; path: string } {
  const [, method, path] = /^([A-Za-z]+) (\/\S*)$/.exec(text) ?? [];
  if (method !== undefined && path !== undefined) return { method: method.toUpperCase(), path };
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no request. Write method and path: 'POST /api/pay'.`,
  );
}
