/** Every command, in the order of the help; each file exports `register(program, io)`. Stage: cli. */
import type { Command } from 'commander';
import * as audit from './audit.js';
import * as demo from './demo.js';
import * as doctor from './doctor.js';
import * as explain from './explain.js';
import * as freeze from './freeze.js';
import type { CliIo } from './output.js';
import * as pin from './pin.js';
import * as rollback from './rollback.js';
import * as run from './run.js';
import * as status from './status.js';
import * as trip from './trip.js';

/** Adds one command (or one family) to the program. */
export type Register = (program: Command, io: CliIo) => void;

export const commands: readonly Register[] = [
  run.register,
  demo.register,
  status.register,
  audit.register,
  explain.register,
  rollback.register,
  pin.register,
  freeze.register,
  trip.register,
  doctor.register,
];
