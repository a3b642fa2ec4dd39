#!/usr/bin/env node
/** The `flyball` executable: runs one command line and leaves with its exit code. Stage: cli. */
import { EXIT } from '../errors.js';
import { runCli } from './program.js';

// A closed pipe (`flyball audit | head`) is the reader's choice, not a fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.fault);
});

process.exitCode = await runCli(process.argv.slice(2));
// Timers of the Redis client outlive a failed command by seconds; what was written is flushed first.
process.stdout.write('', () => process.stderr.write('', () => process.exit()));
