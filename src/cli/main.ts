#!/usr/bin/env node
/** The `flyball` executable: runs one command line and leaves with its exit code. Stage: cli. */
import { EXIT } from '../errors.js';
import { runCli } from './program.js';

// A closed pipe (`flyball audit | head`) is the reader's choice, not a fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  // A file that ends in the middle must not pass for the whole.
  process.stderr.write(
    `error: FLYBALL_E_CLI_OUTPUT: the result could not be written to stdout: ${error.message}. Make room, or write it elsewhere.\n`,
    () => process.exit(process.exitCode || EXIT.fault),
  );
});

process.exitCode = await runCli(process.argv.slice(2));
// Timers of the Redis client outlive a failed command by seconds; what was written is flushed first.
process.stdout.write('', (error) => {
  // Said, and left, above: its listener is called after this.
  if (error == null) process.stderr.write('', () => process.exit());
});
