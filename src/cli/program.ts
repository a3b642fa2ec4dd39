/** The commander program: global flags, help, errors and exit codes round the command files. Stage: cli. */
import { Command, CommanderError } from 'commander';
import { EXIT } from '../errors.js';
import { VERSION } from '../version.js';
import { type CliIo, createIo, type IoStreams, UsageError } from './output.js';
import { commandOf, type Register, registersFor } from './registry.js';

/** A program with these commands. */
export function createProgram(io: CliIo, registers: readonly Register[]): Command {
  const program = new Command('flyball')
    .description('An autopilot for rate limits in Redis: watch it, ask it why, undo it, hold it.')
    .version(VERSION, '-V, --version')
    .option('--json', 'one JSON object on stdout, with "schema": 1')
    .option('-q, --quiet', 'no talk on stderr, only results, warnings and errors')
    .option('--no-color', 'no colours (so do NO_COLOR and TERM=dumb)')
    .option('--no-input', 'never ask; a command that must ask then needs --yes')
    .option('--redis <url>', 'Redis address (default: FLYBALL_REDIS_URL, else ./.flyball)')
    .option('--prefix <prefix>', 'key prefix (default: FLYBALL_PREFIX, else flyball)')
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.err(text),
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
      // Usage errors are printed once, by `runCli`.
      outputError: () => {},
    })
    .exitOverride()
    .hook('preAction', (root) => setFlags(io, root.opts()));
  program.addHelpText(
    'before',
    `Examples:
  flyball run policies/          run the autopilot
  flyball status                 what is in force, what binds, who holds it
  flyball audit checkout         what changed, when and why
  flyball rollback checkout 41   put the values of revision 41 back, and hold them
  flyball doctor                 find what is wrong with the set-up
`,
  );
  program.addHelpText('after', '\nEvery command has --help. All of it: docs/cli.md');
  for (const register of registers) register(program, io);
  for (const command of program.commands) inherit(command, program);
  return program;
}

function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inherit(child, command);
}

/** Runs one command line; resolves to the exit code. Never throws, never calls `process.exit`. */
export async function runCli(argv: readonly string[], streams: IoStreams = {}): Promise<number> {
  const io = createIo(streams);
  // Needed before parsing ends, so that a usage error too comes out in the asked form.
  const early = argv.slice(0, argv.includes('--') ? argv.indexOf('--') : undefined);
  io.flags.json = early.includes('--json');
  if (early.includes('--no-color')) io.flags.colour = false;
  const program = createProgram(io, await registersFor(argv));
  try {
    await program.parseAsync(argv, { from: 'user' });
    return io.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) return io.fail(error);
    return usage(io, error, helpFor(program, argv));
  }
}

function usage(io: CliIo, error: CommanderError, help: string): number {
  if (error.exitCode === 0) return EXIT.ok;
  if (error.code === 'commander.help') return EXIT.usage;
  const message = error.message
    .replace(/^error: /, '')
    .replace(/\n\(Did/, ' (Did')
    // The reason that follows shows the value itself.
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument '.*?' is invalid\. (?=")/s, '$1: ')
    .replace(/^command-argument value '.*?' is invalid for argument '([\w-]+)'\. (?=")/s, '$1: ');
  return io.fail(new UsageError(message.replace(/([^.)?])$/, '$1.'), `See ${help}.`));
}

/** `flyball policy diff --help`: of the command that was meant. */
function helpFor(program: Command, argv: readonly string[]): string {
  const name = commandOf(argv);
  if (name === undefined) return 'flyball --help';
  const command = program.commands.find((each) => each.name() === name);
  const word = argv[argv.indexOf(name) + 1];
  const sub = command?.commands.find((each) => each.name() === word);
  return `flyball ${name} ${sub === undefined ? '' : `${sub.name()} `}--help`;
}

function setFlags(io: CliIo, opts: Record<string, unknown>): void {
  io.flags.json = opts.json === true;
  io.flags.quiet = opts.quiet === true;
  io.flags.input = opts.input !== false;
  if (opts.color === false) io.flags.colour = false;
  if (typeof opts.redis === 'string') io.globals.redis = opts.redis;
  if (typeof opts.prefix === 'string') io.globals.prefix = opts.prefix;
}
