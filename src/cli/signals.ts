/** `flyball signals`: what each signal says, how old it is, what it lets the law do, and why. Stage: cli. */
import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import { EXIT, PolicyError } from '../errors.js';
import { fileWithCode } from '../policy/code.js';
import { needsCare, signalViews } from '../view/signals.js';
import {
  createPool,
  createSignalReader,
  type SeenSignals,
  type SignalSubject,
} from '../view/signals-read.js';
import { createInterrupt } from './interrupt.js';
import type { CliIo } from './output.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';
import { signalsText } from './signals-text.js';
import { safeJsonLine } from './text.js';

interface SignalsFlags {
  watch?: boolean;
}

const WATCH_MS = 1000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('signals')
      .description('Each signal: its reading, age, what it lets the law do now, and why.')
      .argument('[limiter]', 'a limiter, or a policy file; default: all limiters')
      .option('--watch', 'again each second, until Ctrl-C')
      .addHelpText(
        'before',
        `Examples:
  flyball signals
  flyball signals checkout --watch
  flyball signals policies/checkout.ts     before it is adopted
  flyball signals checkout --json
`,
      )
      .addHelpText(
        'after',
        '\nExit codes: 0 every signal that a policy decides by is known, 1 one is missing or stale, 78 a fault in the file.',
      )
      .action(async (given: string | undefined, flags: SignalsFlags) => {
        await withRedis(io, (session) => showSignals(io, session, given, flags));
      }),
  );
}

async function showSignals(
  io: CliIo,
  session: Session,
  given: string | undefined,
  flags: SignalsFlags,
): Promise<void> {
  const subjects = await subjectsOf(session, given);
  const files = subjects.flatMap(({ file, policy }) => (file && policy ? [{ file, policy }] : []));
  const pool = createPool(io.env, (code) => fileWithCode(files, code));
  const readers = subjects.map((subject) => createSignalReader(session, subject, pool));
  const interrupt = createInterrupt();
  try {
    do {
      // One limiter that cannot be read must not take the others away.
      const looks = await Promise.allSettled(readers.map((reader) => reader.look()));
      const failed = looks.find((look) => look.status === 'rejected');
      const seen = looks.flatMap((look) =>
        look.status === 'fulfilled' && look.value !== null ? [look.value] : [],
      );
      if (failed?.status === 'rejected' && seen.length === 0) throw failed.reason;
      show(io, session, seen, flags.watch === true);
      if (flags.watch)
        await setTimeout(WATCH_MS, null, { signal: interrupt.signal }).catch(() => {});
    } while (flags.watch && !interrupt.signal.aborted);
  } finally {
    interrupt.release();
    await Promise.all(readers.map((reader) => reader.close()));
  }
  if (interrupt.signal.aborted) io.exitCode = EXIT.interrupted;
}

/** A name, a policy file, or nothing for all that is registered. */
async function subjectsOf(session: Session, given: string | undefined): Promise<SignalSubject[]> {
  if (given === undefined) return (await listLimiters(session)).map((address) => ({ address }));
  if (!/[./\\]/.test(given) || !existsSync(given)) {
    return [{ address: await findLimiter(session, given) }];
  }
  const { loadPolicies } = await import('../policy/load.js');
  const { loaded, faults } = await loadPolicies([given]);
  if (faults.length > 0) throw new PolicyError(faults);
  return loaded.map(({ file, policy }) => {
    const { name, group } = policy.limiter;
    return { address: { name, group, prefix: session.prefix }, policy, file };
  });
}

function show(io: CliIo, session: Session, seen: readonly SeenSignals[], again: boolean): void {
  const limiters = seen.map((one) => ({
    ...{ limiter: one.limiter, from: one.from, owner: one.owner, ageMs: one.ageMs, held: one.held },
    signals: signalViews(one.policy, one.sample, one.details),
  }));
  const worried = limiters.some(({ signals }) => signals.some(needsCare));
  io.exitCode = worried ? EXIT.fault : EXIT.ok;
  if (io.flags.json) {
    const told = { redis: session.url, limiters };
    if (again) io.out(safeJsonLine({ schema: 1, ...told }));
    else io.json(told);
    return;
  }
  if (limiters.length === 0) {
    io.say(
      'No limiter has an adopted policy. flyball run adopts them; flyball signals <file> reads those of a file.',
    );
    return;
  }
  io.out(limiters.map((one) => signalsText(io, one)).join('\n\n'));
  if (again) io.out('');
}
