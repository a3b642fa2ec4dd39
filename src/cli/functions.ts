/** `flyball functions`: the scripts as a Redis Functions library, for services in other languages. Stage: cli. */
import { Command } from 'commander';
import {
  FUNCTION_NAMES,
  functionsLibrary,
  LIBRARY_NAME,
  loadFunctions,
} from '../redis/functions.js';
import type { CliIo } from './output.js';
import { withRedis } from './session.js';

export function register(program: Command, io: CliIo): void {
  const family = new Command('functions')
    .description('Put the scripts into Redis as functions, for services in other languages.')
    .addHelpText(
      'beforeAll',
      'Examples:\n  flyball functions load\n  flyball functions dump | redis-cli -x FUNCTION LOAD REPLACE\n',
    );
  family
    .command('load')
    .description('Load the library into Redis, in the place of an older one.')
    .action(() =>
      withRedis(io, async ({ redis, url }) => {
        const replaced = await loadFunctions(redis);
        if (io.flags.json) {
          io.json({ redis: url, library: LIBRARY_NAME, functions: FUNCTION_NAMES, replaced });
          return;
        }
        const instead = replaced.length > 0 ? ` in the place of ${replaced.join(', ')}` : '';
        io.out(`${LIBRARY_NAME} is loaded${instead}: ${FUNCTION_NAMES.join(', ')}.`);
      }),
    );
  family
    .command('dump')
    .description('Print the source of the library; needs no Redis.')
    .action(() => {
      if (io.flags.json) io.json({ library: LIBRARY_NAME, source: functionsLibrary() });
      else io.out(functionsLibrary().trimEnd());
    });
  program.addCommand(family);
}
