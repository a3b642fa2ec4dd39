/** `flyball notify test`: sends one test alert to each destination of the policies, and says what came of it. Stage: cli. */
import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { EXIT, PolicyError } from '../errors.js';
import { loadPolicies } from '../policy/load.js';
import type { Destination } from '../policy/notify-schema.js';
import { type Alert, textOf } from '../report/notify/alert.js';
import { attempt } from '../report/notify/attempt.js';
import { addressOf, nameOf, resolveTarget } from '../report/notify/target.js';
import { actorName } from './change.js';
import { policyPaths } from './doctor-policies.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

interface NotifyFlags {
  to?: string;
  dryRun?: boolean;
}

interface Sent {
  destination: string;
  limiters: string[];
  status: 'sent' | 'failed' | 'dry_run';
  why: string | null;
}

const DEADLINE_MS = 10_000;

export function register(program: Command, io: CliIo): void {
  const notify = new Command('notify').description('Where alerts go: try it before it matters.');
  notify.addCommand(
    new Command('test')
      .description('Send one test alert to each destination that the policies name.')
      .argument('[policies...]', 'files or folders (default: FLYBALL_POLICIES, else ./policies)')
      .option('--to <kind>', 'only destinations of this kind: slack, webhook, email …')
      .option('--dry-run', 'resolve every destination and show the message, but send nothing')
      .addHelpText(
        'before',
        'Examples:\n  flyball notify test\n  flyball notify test policies/checkout.ts --to slack\n  flyball notify test --dry-run\n',
      )
      .addHelpText(
        'after',
        '\nExit codes: 0 all were delivered, 1 one was not, 64 no policy names a destination, 78 a fault in a policy.',
      )
      .action(async (given: string[], flags: NotifyFlags) => {
        const paths = policyPaths(io, given);
        const { loaded, faults } = await loadPolicies(paths.length > 0 ? paths : 'policies');
        if (faults.length > 0) throw new PolicyError(faults);
        const wanted = new Map<string, { destination: Destination; limiters: string[] }>();
        for (const { policy } of loaded) {
          for (const destination of policy.notify ?? []) {
            if (flags.to !== undefined && destination.to !== flags.to) continue;
            const key = addressOf(destination);
            const entry = wanted.get(key) ?? { destination, limiters: [] };
            entry.limiters.push(policy.limiter.name);
            wanted.set(key, entry);
          }
        }
        if (wanted.size === 0) {
          const kind = flags.to === undefined ? '' : ` of the kind ${flags.to}`;
          throw new UsageError(
            `No policy here names a destination${kind}.`,
            "Add notify: [slack({ url: env('SLACK_URL') })] to a policy.",
          );
        }
        const sent = await Promise.all(
          [...wanted.values()].map((each) => trySending(each, io.env, flags.dryRun === true)),
        );
        if (sent.some(({ status }) => status === 'failed')) io.exitCode = EXIT.fault;
        if (io.flags.json) return io.json({ destinations: sent });
        io.out(
          io.table(
            ['destination', 'limiters', 'result'],
            sent.map(({ destination, limiters, status, why }) => [
              destination,
              limiters.join(', '),
              clean(why === null ? status.replace('_', ' ') : `${status}: ${why}`),
            ]),
          ),
        );
        if (flags.dryRun)
          io.say(
            ['It would say:', ...textOf(testAlert('limiter')).split('\n').map(clean)].join('\n'),
          );
      }),
  );
  program.addCommand(notify);
}

async function trySending(
  { destination, limiters }: { destination: Destination; limiters: string[] },
  env: NodeJS.ProcessEnv,
  dryRun: boolean,
): Promise<Sent> {
  const name = nameOf(destination);
  const resolved = resolveTarget(destination, env);
  if ('fault' in resolved) {
    return { destination: name, limiters, status: 'failed', why: resolved.fault };
  }
  if (dryRun) return { destination: name, limiters, status: 'dry_run', why: null };
  const { target, secrets } = resolved;
  const outcome = await attempt({
    ...{ alert: testAlert(limiters[0]!), target, secrets, id: randomUUID() },
    ...{ nowMs: Date.now(), deadlineMs: DEADLINE_MS },
  });
  const why = outcome.status === 'failed' ? outcome.why : null;
  return { destination: name, limiters, status: outcome.status, why };
}

function testAlert(limiter: string): Alert {
  return {
    key: `${limiter}/test`,
    kind: 'test',
    severity: 'info',
    state: 'event',
    limiter,
    owner: null,
    what: 'a test, nothing has happened',
    why: 'flyball notify test was called',
    who: actorName(),
    numbers: [],
    undo: null,
    look: `flyball status ${limiter}`,
    atMs: Date.now(),
  };
}
