/** Every command, in the order of the help; each file exports `register(program, io)` and is loaded when it is called for. Stage: cli. */
import type { Command } from 'commander';
import type { CliIo } from './output.js';

/** Adds one command (or one family) to the program. */
export type Register = (program: Command, io: CliIo) => void;

interface CommandFile {
  names: readonly string[];
  load(): Promise<{ register: Register }>;
}

/** A verb in an incident must not wait for the daemon's or the demo's modules: only its own file is loaded. */
const FILES: readonly CommandFile[] = [
  { names: ['run'], load: () => import('./run.js') },
  { names: ['demo'], load: () => import('./demo.js') },
  { names: ['check'], load: () => import('./check.js') },
  { names: ['plan'], load: () => import('./plan.js') },
  { names: ['apply'], load: () => import('./apply.js') },
  { names: ['policy'], load: () => import('./policy.js') },
  { names: ['simulate'], load: () => import('./simulate.js') },
  { names: ['backtest'], load: () => import('./backtest.js') },
  { names: ['init'], load: () => import('./init.js') },
  { names: ['status'], load: () => import('./status.js') },
  { names: ['signals'], load: () => import('./signals.js') },
  { names: ['tail'], load: () => import('./tail.js') },
  { names: ['top'], load: () => import('./top.js') },
  { names: ['audit'], load: () => import('./audit.js') },
  { names: ['explain'], load: () => import('./explain.js') },
  { names: ['report'], load: () => import('./report.js') },
  { names: ['debug'], load: () => import('./debug.js') },
  { names: ['rollback'], load: () => import('./rollback.js') },
  { names: ['pin', 'release'], load: () => import('./pin.js') },
  { names: ['freeze', 'thaw'], load: () => import('./freeze.js') },
  { names: ['bounds'], load: () => import('./bounds.js') },
  { names: ['rollout'], load: () => import('./rollout.js') },
  { names: ['promote', 'approve'], load: () => import('./promote.js') },
  { names: ['tune'], load: () => import('./tune.js') },
  { names: ['size'], load: () => import('./size.js') },
  { names: ['trip', 'reset'], load: () => import('./trip.js') },
  { names: ['subject'], load: () => import('./subject.js') },
  { names: ['functions'], load: () => import('./functions.js') },
  { names: ['notify'], load: () => import('./notify.js') },
  { names: ['token'], load: () => import('./token.js') },
  { names: ['doctor'], load: () => import('./doctor.js') },
  { names: ['completion', '__complete'], load: () => import('./completion.js') },
];

/** Global options that take a value: the word after them is no command. */
const WITH_VALUE = new Set(['--redis', '--prefix']);

/** The command that the command line names; undefined for a typing error, or none at all. */
export function commandOf(argv: readonly string[]): string | undefined {
  const word = argv.find((arg, i) => !arg.startsWith('-') && !WITH_VALUE.has(argv[i - 1] ?? ''));
  return FILES.flatMap((file) => file.names).find((name) => name === word);
}

/** They look at the whole program. */
const OF_ALL: readonly (string | undefined)[] = ['completion'];

/** The file that the command line names; all of them for help, a typing error, completion, or no command at all. */
export async function registersFor(argv: readonly string[]): Promise<Register[]> {
  const command = commandOf(argv);
  const named = FILES.filter((file) => command !== undefined && file.names.includes(command));
  const files = named.length > 0 && !OF_ALL.includes(command) ? named : FILES;
  const loaded = await Promise.all(files.map((file) => file.load()));
  return loaded.map((file) => file.register);
}
