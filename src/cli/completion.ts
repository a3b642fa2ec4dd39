/** `flyball completion`: a script for the shell; and the names of limiters for it, at once or not at all. Stage: cli. */
import { Argument, Command } from 'commander';
import { connect } from '../redis/connect.js';
import { listLimiters } from '../view/limiters.js';
import { completionScript, SHELLS, type Shell } from './completion-scripts.js';
import { specOf } from './completion-spec.js';
import type { CliIo } from './output.js';
import { cliRedis } from './session.js';

/** Who waits has pressed a key. */
const DEADLINE_MS = 200;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('completion')
      .description('Print a completion script for a shell: commands, options, names of limiters.')
      .addArgument(new Argument('<shell>', 'whose script').choices(SHELLS))
      .addHelpText(
        'before',
        `Examples:
  source <(flyball completion bash)                 in ~/.bashrc
  source <(flyball completion zsh)                  in ~/.zshrc, after compinit
  flyball completion fish | source                  in ~/.config/fish/config.fish
`,
      )
      .action((shell: Shell) => {
        // The registry has loaded every command for this one.
        const script = completionScript(shell, specOf(program));
        if (io.flags.json) io.json({ shell, script });
        else io.out(script);
      }),
  );
  program.addCommand(
    new Command('__complete')
      .description('Print what a completion script asks for; silent where nothing is known.')
      .addArgument(new Argument('<what>').choices(['limiters']))
      .argument('[words...]', 'the command line so far, after --')
      .action(async (_: string, words: string[]) => {
        const names = await namesWithin(io, words).catch(() => []);
        if (io.flags.json) io.json({ limiters: names });
        else if (names.length > 0) io.out(names.join('\n'));
      }),
    { hidden: true },
  );
}

/** The words may say which Redis. */
async function namesWithin(io: CliIo, words: readonly string[]): Promise<string[]> {
  for (const name of ['redis', 'prefix'] as const) {
    const at = words.lastIndexOf(`--${name}`);
    const joined = words.findLast((word) => word.startsWith(`--${name}=`));
    const value = joined?.slice(name.length + 3) ?? (at === -1 ? undefined : words[at + 1]);
    if (value !== undefined) io.globals[name] = value;
  }
  const { url, prefix } = cliRedis(io);
  const redis = connect({ url, name: 'cli', env: io.env });
  redis.on('error', () => {});
  const late = new Promise<string[]>((ok) => setTimeout(ok, DEADLINE_MS, []));
  const listed = listLimiters({ redis, url, prefix }).then((all) => all.map(({ name }) => name));
  listed.catch(() => {});
  try {
    return await Promise.race([listed, late]);
  } finally {
    redis.disconnect();
  }
}
