/** Every command, in the order of the help; each file exports `register(program, io)`. Stage: cli. */
import type { Command } from 'commander';
import type { CliIo } from './output.js';

/** Adds one command (or one family) to the program. */
export type Register = (program: Command, io: CliIo) => void;

export const commands: readonly Register[] = [];
