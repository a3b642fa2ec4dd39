/** `flyball run`: the autopilot as a process, from its environment to its exit code. Stage: cli. */
import { constants } from 'node:os';
import closeWithGrace from 'close-with-grace';
import { type Command, Option } from 'commander';
import { readConfig } from '../daemon/config.js';
import { startDaemon } from '../daemon/daemon.js';
import { createLog } from '../log.js';
import type { CliIo } from './output.js';

/** Kubernetes kills after 30 s: whatever hangs must not cost the release of the leases. */
const STOP_WITHIN_MS = 10_000;

/** A crash must end the process: with a handler a fault is met again and again, and it spins instead of dying. */
const CRASHES = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const;

interface RunFlags {
  policies?: string[];
  once?: boolean;
  reload?: 'auto' | 'apply';
  embedded: boolean;
}

export function register(program: Command, io: CliIo): void {
  program
    .command('run')
    .description('Run the autopilot: adopt policies, lead limiters, move them within their bounds.')
    .argument('[policies...]', 'policy files or folders (default: FLYBALL_POLICIES, else policies)')
    .option('--policies <paths...>', 'the same, as a flag')
    .addOption(
      new Option(
        '--reload <how>',
        'adopt changed files at once, or wait for flyball apply',
      ).choices(['auto', 'apply']),
    )
    .option('--once', 'one turn of every limiter, then leave')
    .option('--no-embedded', 'never start a private Redis')
    .addHelpText(
      'before',
      `Examples:
  flyball run policies/
  flyball run policies/checkout.ts --redis redis://10.0.0.5:6379
  flyball run --once                        one turn, to see that it works
`,
    )
    .addHelpText(
      'after',
      `
Settings come from the environment (FLYBALL_REDIS_URL, FLYBALL_TICK_MS, FLYBALL_LEASE_MS, FLYBALL_HTTP_PORT …).
Exit codes: 0 stopped, 1 fault, 75 Redis unreachable at start, 78 bad settings or policies.`,
    )
    .action((paths: string[], flags: RunFlags) => run(paths, flags, io));
}

async function run(paths: string[], flags: RunFlags, io: CliIo): Promise<void> {
  const given = [...paths, ...(flags.policies ?? [])];
  const config = readConfig(io.env, {
    ...(given.length > 0 ? { policies: given } : {}),
    ...(flags.reload === undefined ? {} : { reload: flags.reload }),
    ...(io.globals.redis === undefined ? {} : { redisUrl: io.globals.redis }),
    ...(io.globals.prefix === undefined ? {} : { prefix: io.globals.prefix }),
  });
  const log = createLog({ level: config.logLevel });
  const starting = startDaemon({
    config,
    env: io.env,
    log,
    embedded: flags.embedded,
    once: flags.once === true,
  });
  // From here on: a signal during the start too waits for what has begun, then takes it apart.
  const grace = closeWithGrace(
    {
      delay: STOP_WITHIN_MS,
      logger: false,
      skip: ['beforeExit', ...CRASHES],
      onTimeout: (ms) =>
        log.error({ event: 'stop_timeout' }, `Not stopped after ${ms} ms; leaving.`),
      onSecondSignal: (signal) =>
        process.exit(128 + (constants.signals[signal as NodeJS.Signals] ?? 0)),
    },
    async ({ signal, err }) => {
      if (err) log.fatal({ event: 'fault', err }, `Unexpected fault: ${err.message}`);
      else
        log.info(
          { event: 'stopping', signal },
          `${signal}: stopping; a second one leaves at once.`,
        );
      const daemon = await starting.catch(() => null);
      await daemon?.close();
    },
  );
  try {
    const daemon = await starting;
    if (flags.once) await daemon.close();
    else await new Promise<never>(() => {});
  } finally {
    grace.uninstall();
  }
}
