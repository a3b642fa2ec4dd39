/** Bytes of a terminal in raw mode as keys by name. Pure. Stage: cli. */

/** A printable character as itself; the others by name. */
export type Key = string;

const SEQUENCES: Readonly<Record<string, Key>> = {
  '[A': 'up',
  OA: 'up',
  '[B': 'down',
  OB: 'down',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[H': 'home',
  OH: 'home',
  '[1~': 'home',
  '[F': 'end',
  OF: 'end',
  '[4~': 'end',
  '[3~': 'delete',
};
const CONTROLS: Readonly<Record<string, Key>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x04': 'ctrl-d',
  '\x0c': 'ctrl-l',
  '\x15': 'ctrl-u',
  '\x1a': 'ctrl-z',
  '\t': 'down',
};

/** What one read of the terminal holds, in order; sequences that mean nothing here are left out. */
export function keysOf(text: string): Key[] {
  const keys: Key[] = [];
  let rest = text;
  while (rest !== '') {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what a terminal sends.
    const sequence = /^\x1b(\[[0-9;?]*[ -/]*[@-~]|O[@-~])/.exec(rest);
    if (sequence) {
      const key = SEQUENCES[sequence[1]!];
      if (key !== undefined) keys.push(key);
      rest = rest.slice(sequence[0].length);
      continue;
    }
    const char = String.fromCodePoint(rest.codePointAt(0)!);
    rest = rest.slice(char.length);
    if (char === '\x1b') keys.push('escape');
    else if (CONTROLS[char] !== undefined) keys.push(CONTROLS[char]!);
    else if (char >= ' ') keys.push(char);
  }
  return keys;
}
