/** What the fields of a verb are called on the command line. Stage: cli. */
import { type FieldName, WishFault } from '../actuate/verbs/wish-fault.js';
import { FlyballError } from '../errors.js';

/** Those that are called otherwise than their field. */
const OTHERWISE: Readonly<Record<string, string>> = { subjects: '--subject', toMs: '--before' };

/** `rateMax` → `--rate-max`. */
export const flagOf: FieldName = (field) =>
  OTHERWISE[field] ?? `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** What is wrong with what a verb was asked is told by its flags; any other error is as it is. */
export function byFlags(error: unknown): unknown {
  return error instanceof WishFault ? new FlyballError(error.code, error.told(flagOf)) : error;
}
