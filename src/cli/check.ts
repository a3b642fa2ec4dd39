/** `flyball check`: loads policy files as the daemon does and names every fault of every file. Stage: cli. */
import { Command, InvalidArgumentError } from 'commander';
import { EXIT, formatFault } from '../errors.js';
import { downstreamWarnings } from '../policy/downstream.js';
import { type LoadedPolicy, loadPolicies, policyFiles } from '../policy/load.js';
import { upstreamWarnings } from '../policy/upstream.js';
import { checkLive, type LiveFinding, liveLines } from './check-live.js';
import { checkTypes } from './check-types.js';
import { policyPaths } from './doctor-policies.js';
import { policyDeadlineMs } from './options.js';
import type { CliIo } from './output.js';
import { clean, number } from './text.js';

interface CheckFlags {
  deadline?: number;
  live?: boolean;
  types?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('check')
      .description('Check policy files: every fault at once, with file, field and what is allowed.')
      .argument('[policies...]', 'files or folders (default: FLYBALL_POLICIES, else ./policies)')
      .option('--deadline <ms>', 'time one file may take to load', wholeMs)
      .option('--types', 'what TypeScript says too, where it is installed beside the policies')
      .option('--live', 'ask each source of the signals too, and say how to mend what is wrong')
      .addHelpText(
        'before',
        'Examples:\n  flyball check\n  flyball check --types\n  flyball check --live\n  flyball check policies/checkout.ts --json\n',
      )
      .addHelpText(
        'after',
        '\nExit codes: 0 all valid, 1 with --live a source gives no reading, 78 a fault in a policy.',
      )
      .action(async (named: string[], flags: CheckFlags) => {
        const paths = policyPaths(io, named);
        const given = paths.length > 0 ? paths : ['policies'];
        const { loaded, faults } = await loadPolicies(given, {
          deadlineMs: flags.deadline ?? policyDeadlineMs(io.env),
        });
        if (flags.types)
          faults.push(...(await checkTypes(policyFiles(given).files.map(([, found]) => found))));
        if (faults.length > 0) io.exitCode = EXIT.badConfig;
        const policies = loaded.map(({ policy }) => policy);
        const warnings = [...downstreamWarnings(policies), ...upstreamWarnings(policies)];
        const live = flags.live ? await checkLive(loaded, io.env) : null;
        if (faults.length === 0 && live?.some(({ status }) => status === 'fail')) {
          io.exitCode = EXIT.fault;
        }
        if (io.flags.json) {
          const asked = live === null ? {} : { live };
          const valid = faults.length === 0;
          io.json({ valid, policies: loaded.map(row), faults, warnings, ...asked });
          return;
        }
        if (loaded.length > 0) io.out(table(io, loaded));
        if (live !== null) tellLive(io, live, faults.length === 0);
        for (const warning of warnings) io.err(clean(`Warning: ${warning}`));
        for (const fault of faults) io.err(clean(formatFault(fault)));
        const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;
        const files = count(loaded.length, 'valid policy').replace('policys', 'policies');
        io.say(faults.length > 0 ? `${files}, ${count(faults.length, 'fault')}.` : `${files}.`);
      }),
  );
}

function tellLive(io: CliIo, live: readonly LiveFinding[], allValid: boolean): void {
  if (live.length > 0) io.out(`\n${liveLines(io, live)}`);
  // With a fault in a file its signals were not asked for.
  else if (allValid) io.say('No signal is read outside the telemetry; flyball signals shows that.');
}

function row({ file, policy, hash }: LoadedPolicy) {
  const { limiter, mode, control } = policy;
  const { name, group, rate, capacity, inFlightMax } = limiter;
  return { file, limiter: name, group, mode, law: control.law, rate, capacity, inFlightMax, hash };
}

function table(io: CliIo, loaded: readonly LoadedPolicy[]): string {
  return io.table(
    ['file', 'limiter', 'mode', 'law', 'rate', 'capacity', 'in flight', 'hash'],
    loaded
      .map(row)
      .map(({ file, limiter, mode, law, rate, capacity, inFlightMax, hash }) => [
        file,
        limiter,
        mode,
        law,
        `${number(rate)}/s`,
        number(capacity),
        inFlightMax === undefined ? 'no cap' : number(inFlightMax),
        hash.slice(0, 12),
      ]),
  );
}

function wholeMs(text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(ms >= 100 && ms <= 600_000)) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is not a number of milliseconds from 100 to 600000.`,
    );
  }
  return ms;
}
