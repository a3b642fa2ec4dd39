/** The function of a custom signal: it stays in the process that loaded the file, and the policy holds a reference. Stage: policy. */

/** What a custom function is given. */
export interface CustomContext {
  /** Aborted at the deadline. */
  signal: AbortSignal;
  /** The environment of the daemon. */
  env: Readonly<Record<string, string | undefined>>;
}

export type CustomFunction = (context: CustomContext) => unknown;

/** Where a signal carries it: data is copied by its names, and a symbol is none. The same in every copy of this module. */
export const ASK = Symbol.for('flyball.custom');

/** The custom functions of what a policy file exports, by the name of their signal. */
export function customFunctions(policy: unknown): Map<string, CustomFunction> {
  const found = new Map<string, CustomFunction>();
  for (const [name, signal] of Object.entries(record(record(policy).signals))) {
    const ask = record(signal)[ASK];
    if (typeof ask === 'function') found.set(name, ask as CustomFunction);
  }
  return found;
}

/** Writes into a policy's plain copy which functions it means: `code` is the hash of the text of their file. */
export function refer(plain: unknown, names: Iterable<string>, code: string): void {
  const signals = record(record(plain).signals);
  for (const name of names) Object.assign(record(signals[name]), { function: name, code });
}

function record(value: unknown): Record<PropertyKey, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>) : {};
}
