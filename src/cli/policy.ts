/** `flyball policy history|show|diff|use`: the versions of a policy that are kept, and an old one adopted again. Stage: cli. */
import { Command, InvalidArgumentError } from 'commander';
import { retireCanary } from '../actuate/canary-end.js';
import { stopCanary } from '../actuate/verbs/canary.js';
import { planView, stepsOf } from '../view/plan.js';
import {
  findVersion,
  type PolicyHistory,
  type PolicyVersion,
  policyHistory,
  policyVersionDiff,
  replacedVersion,
} from '../view/policy-history.js';
import { carryOut } from './adopting.js';
import {
  actorName,
  type ChangeFlags,
  changing,
  checkAnswer,
  checkReason,
  runChange,
} from './change.js';
import { type CliIo, UsageError } from './output.js';
import { fieldLines } from './plan-text.js';
import { findLimiter, withRedis } from './session.js';
import { clean, localTime } from './text.js';

export function register(program: Command, io: CliIo): void {
  const policy = new Command('policy')
    .description(
      'The last 20 versions of a policy: who adopted each, what differs, use an old one.',
    )
    .addHelpText(
      'before',
      `Examples:
  flyball policy history checkout
  flyball policy diff checkout 4f3a9c21           that version → the adopted one
  flyball policy show checkout 4f3a9c21           its text
  flyball policy use checkout 4f3a9c21 --reason "the new bounds were wrong"
  flyball policy use checkout --release           back to what the file says
  flyball policy canary checkout --stop           end the canary of a change
`,
    );
  policy
    .command('history')
    .description('The versions that are kept, newest first.')
    .argument('<limiter>')
    .addHelpText('before', 'Examples:\n  flyball policy history checkout\n')
    .action((limiter: string) => history(io, limiter));
  policy
    .command('show')
    .description('The text of a version, as the file was when it was adopted.')
    .argument('<limiter>')
    .argument('[hash]', 'its beginning is enough (default: the adopted one)', parseHash)
    .addHelpText(
      'before',
      'Examples:\n  flyball policy show checkout\n  flyball policy show checkout 4f3a9c21\n',
    )
    .action((limiter: string, hash?: string) => show(io, limiter, hash));
  policy
    .command('diff')
    .description('What differs between two versions, field by field.')
    .argument('<limiter>')
    .argument('<hash>', 'from; its beginning is enough', parseHash)
    .argument('[to]', 'to (default: the adopted one)', parseHash)
    .addHelpText('before', 'Examples:\n  flyball policy diff checkout 4f3a9c21\n')
    .action((limiter: string, hash: string, to?: string) => diff(io, limiter, hash, to));
  policy.addCommand(
    changing(
      'use',
      'Adopt a version that is kept. Daemons leave it until the file changes again.',
      `  flyball policy use checkout 4f3a9c21
  flyball policy use checkout --release`,
    )
      .argument('<limiter>')
      .argument('[hash]', 'its beginning is enough', parseHash)
      .option('--release', 'back to the version that was replaced, which the file says')
      .action((limiter: string, hash: string | undefined, flags: UseFlags) =>
        use(io, limiter, hash, flags),
      ),
  );
  policy.addCommand(
    changing(
      'canary',
      'End the canary of a policy: the adopted one decides for all again.',
      '  flyball policy canary checkout --stop --reason "the sale begins"',
    )
      .argument('<limiter>')
      .option('--stop', 'end it; its version is not tried again before its file changes')
      .action(async (limiter: string, flags: ChangeFlags & { stop?: boolean }) => {
        if (flags.stop !== true) {
          throw new UsageError(
            'give --stop.',
            `How it goes: flyball status ${clean(limiter)}. To adopt it for all now: flyball apply.`,
          );
        }
        await runChange(
          ...([io, limiter, flags, () => stopCanary] as const),
          ({ redis }, address) => retireCanary(redis, address),
        );
      }),
  );
  program.addCommand(policy);
}

interface UseFlags extends ChangeFlags {
  release?: boolean;
}

async function history(io: CliIo, limiter: string): Promise<void> {
  await withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const found = await policyHistory(session.redis, address);
    if (io.flags.json) {
      const versions = found.versions.map(({ text, ...each }) => ({
        ...each,
        kept: text !== null,
      }));
      return io.json({ ...found, versions });
    }
    io.out(historyText(io, found));
  });
}

function historyText(io: CliIo, { versions, limiter }: PolicyHistory): string {
  if (versions.length === 0) return `No version of the policy of ${clean(limiter)} is kept yet.`;
  const marks = ({ adopted, replaced }: PolicyVersion) =>
    adopted ? io.c.green('adopted') : replaced ? io.c.yellow('replaced by a person') : '';
  return io.table(
    ['version', 'adopted at', 'revision', 'by', 'file', ''],
    versions.map((version) => [
      version.hash.slice(0, 12),
      localTime(version.atMs),
      String(version.revision),
      clean(version.by),
      clean(version.file),
      marks(version),
    ]),
  );
}

async function show(io: CliIo, limiter: string, hash: string | undefined): Promise<void> {
  await withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const found = await policyHistory(session.redis, address);
    const version = await findVersion(session.redis, address, found, hash ?? found.adopted ?? '');
    const { file, text = null, policy } = version;
    if (io.flags.json) return io.json({ limiter, hash: version.hash, file, text, policy });
    if (text === null) io.say('Its text is not kept; these are its plain data.');
    const shown = text ?? JSON.stringify(policy, null, 2);
    io.out(shown.split('\n').map(clean).join('\n'));
  });
}

async function diff(io: CliIo, limiter: string, hash: string, to?: string): Promise<void> {
  await withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const found = await policyVersionDiff(session.redis, address, hash, to ?? null);
    if (io.flags.json) return io.json({ ...found });
    const title = `${clean(limiter)}  ${found.from.slice(0, 12)} → ${found.to.slice(0, 12)}`;
    if (found.fields.length === 0) return io.out(`${title}  nothing differs`);
    io.out([title, ...fieldLines(io.c, found.fields)].join('\n'));
  });
}

async function use(
  io: CliIo,
  limiter: string,
  hash: string | undefined,
  flags: UseFlags,
): Promise<void> {
  if ((hash === undefined) === (flags.release !== true)) {
    throw new UsageError(
      hash === undefined
        ? 'name a version, or give --release.'
        : 'a version and --release exclude each other.',
      `flyball policy history ${clean(limiter)} lists the versions.`,
    );
  }
  checkReason(flags);
  await withRedis(io, async (session) => {
    const { redis } = session;
    const address = await findLimiter(session, limiter);
    const found = await policyHistory(redis, address);
    const loaded =
      hash === undefined
        ? await replacedVersion(redis, address, found)
        : await findVersion(redis, address, found, hash);
    if (loaded === null) {
      const sentence = `Nobody has put another policy in place of the file's: ${address.name} is as its files say.`;
      if (io.flags.json) return io.json({ status: 'nothing', limiter, sentence });
      return io.out(sentence);
    }
    checkAnswer(io, flags);
    const view = await planView(session, [loaded], actorName(), false);
    await carryOut(io, session, flags, view, stepsOf(view.limiters, [loaded]));
    if (flags.dryRun || flags.release || io.exitCode !== 0 || view.counts.change === 0) return;
    io.say(
      io.ce.dim(
        `It holds until its file changes again. flyball policy use ${clean(limiter)} --release goes back to the file's.`,
      ),
    );
  });
}

/** A few hexadecimal digits of a SHA-256. */
function parseHash(text: string): string {
  if (!/^[0-9a-fA-F]{4,64}$/.test(text)) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is no version: give 4 to 64 hexadecimal digits of its hash, as flyball policy history shows.`,
    );
  }
  return text;
}
