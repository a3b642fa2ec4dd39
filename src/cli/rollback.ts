/** `flyball rollback`: the limits of an old revision, before the last change, of the last good one or of a time come back, and hold. Stage: cli. */
import { type Command, Option } from 'commander';
import { readParams } from '../actuate/actuator.js';
import { rollback } from '../actuate/verbs/rollback.js';
import { FlyballError } from '../errors.js';
import { loadPolicies } from '../policy/load.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Session } from '../view/limiters.js';
import { type RollbackWish, rollbackTarget } from '../view/rollback-target.js';
import { clean } from '../view/text.js';
import { type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import { runChangeAll } from './change-all.js';
import { parseRevision, parseSince, parseWhole, policyDeadlineMs } from './options.js';
import { type CliIo, UsageError } from './output.js';

interface RollbackFlags extends ChangeFlags {
  epoch?: number;
  last?: boolean;
  good?: boolean;
  before?: ReturnType<typeof parseSince>;
  all?: boolean;
  policy?: string;
}

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'rollback',
    'Put the rate, capacity and cap of an old revision back, and hold them.',
    `  flyball rollback checkout --last          undo the last change; asks first, holds 1 h
  flyball rollback checkout --good          the last that stood 10 min with its objectives met
  flyball rollback checkout 41 --for 4h --reason "deploy 3.2 is slow" --yes
  flyball rollback checkout --before 2h     what held two hours ago
  flyball rollback --all --before 2026-05-04T13:00:00Z --reason "INC-118"
  flyball rollback --policy policies/checkout.ts --last --dry-run`,
  )
    .argument('[limiter]')
    .argument('[revision]', 'see flyball audit <limiter>', parseRevision)
    .addOption(
      new Option(
        '--last',
        "before the last change: a person's or a policy's alone, or the whole move of the autopilot",
      ).conflicts(['good', 'before']),
    )
    .addOption(
      new Option('--good', 'the newest that stood 10 minutes with its objectives met').conflicts(
        'before',
      ),
    )
    .option(
      '--before <when>',
      'what held then: a length of time back (2h) or an ISO time',
      parseSince,
    )
    .option('--all', 'every limiter that is registered now')
    .addOption(
      new Option('--policy <file or hash>', 'every limiter of that policy').conflicts('all'),
    )
    .option(
      '--epoch <epoch>',
      'when a revision exists in several epochs (default: newest)',
      parseWhole,
    );
  holding(command, '1s … 365d (default 1h)').action(
    async (limiter: string | undefined, revision: number | undefined, flags: RollbackFlags) => {
      const wish = wishOf(revision, flags);
      const hold = holdOf(flags);
      const plannerFor = async (session: Session, address: LimiterAddress) =>
        rollback(await rollbackTarget(session.redis, address, wish), hold);
      if (!isMany(limiter, wish, flags)) return runChange(io, limiter!, flags, plannerFor);
      const { policy } = flags;
      const select = (session: Session, limiters: LimiterAddress[]) =>
        ofPolicy(io, session, limiters, policy!);
      await runChangeAll(io, flags, {
        plannerFor,
        ...(policy === undefined ? {} : { select }),
      });
    },
  );
  program.addCommand(command);
}

function wishOf(
  revision: number | undefined,
  { last, good, before, epoch }: RollbackFlags,
): RollbackWish {
  const ways = [revision !== undefined, last, good, before !== undefined].filter(Boolean).length;
  if (ways !== 1) {
    throw new UsageError(
      ways === 0
        ? 'say what to go back to: a revision, --last, --good or --before <when>.'
        : 'a revision, --last, --good and --before exclude each other.',
      ways === 0 ? '--last undoes the last change.' : 'Give one of them.',
    );
  }
  if (epoch !== undefined && revision === undefined) {
    throw new UsageError('--epoch belongs to a revision.', 'Leave it out.');
  }
  if (revision !== undefined) return { to: 'revision', revision, epoch };
  if (last) return { to: 'last' };
  return good ? { to: 'good' } : { to: 'before', at: before! };
}

function isMany(limiter: string | undefined, wish: RollbackWish, { all, policy }: RollbackFlags) {
  const many = all === true || policy !== undefined;
  if (many && wish.to === 'revision') {
    throw new UsageError(
      'revisions count within one limiter.',
      'With --all or --policy give --last, --good or --before <when>.',
    );
  }
  if (many === (limiter !== undefined)) {
    const what = many ? 'a limiter, --all and --policy exclude each other.' : 'name a limiter.';
    throw new UsageError(
      what,
      many
        ? 'Leave one out.'
        : 'Or give --all, or --policy <file or hash>; flyball status lists them.',
    );
  }
  return many;
}

const HASH = /^[0-9a-f]{6,64}$/;

/** Those that the file names; or whose adopted policy has this hash, of which the first six digits are enough. */
async function ofPolicy(
  io: CliIo,
  session: Session,
  limiters: LimiterAddress[],
  policy: string,
): Promise<LimiterAddress[]> {
  const chosen = HASH.test(policy)
    ? await withHash(session, limiters, policy)
    : await inFile(io, limiters, policy);
  if (chosen.length > 0) return chosen;
  throw new FlyballError(
    'FLYBALL_E_CLI_UNKNOWN_LIMITER',
    `no limiter in Redis at ${session.url} is of the policy ${clean(policy)}. \`flyball status --json\` shows the hash of each (policyHash).`,
  );
}

async function withHash(session: Session, limiters: LimiterAddress[], hash: string) {
  const hashes = await Promise.all(
    limiters.map(async (address) => {
      // One whose params cannot be read is of no policy; the others go on.
      const read = await readParams(session.redis, address).catch(() => null);
      return read?.params?.policyHash ?? '';
    }),
  );
  return limiters.filter((_, i) => hashes[i]!.startsWith(hash));
}

async function inFile({ env }: CliIo, limiters: LimiterAddress[], file: string) {
  const { loaded, faults } = await loadPolicies([file], { deadlineMs: policyDeadlineMs(env) });
  if (faults.length > 0) {
    throw new UsageError(
      `${clean(file)} does not load, so its limiters are not known.`,
      'Give the hash of the adopted policy in its place (flyball status --json), or see flyball check.',
    );
  }
  const names = new Set(loaded.map(({ policy }) => policy.limiter.name));
  return limiters.filter(({ name }) => names.has(name));
}
