/** What may stand where, as functions that bash and zsh read alike. Pure. Stage: cli. */
import { allOf, type CommandSpec, type Kind, type OptionSpec } from './completion-spec.js';

/** One word that may be typed, as a line of the table. */
export type Line = (word: string, description: string) => string;

/**
 * Is this word a command here, does this option take a value; and what may be a value, an option, or the argument at
 * a position: lines, or `:files` or `:limiters`.
 */
export function tables(spec: CommandSpec, line: Line): string {
  const all = allOf(spec);
  const takers = all.flatMap(({ path, options }) =>
    options.flatMap((option) => (option.value === undefined ? [] : [{ path, option }])),
  );
  return [
    shellCase(
      '_flyball_is',
      all.slice(1).map(({ path }) => [path, 'return 0']),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's.
      '"${1:+$1 }$2"',
      'return 1',
    ),
    shellCase(
      '_flyball_takes',
      takers.flatMap(({ path, option }) =>
        names(option).map((name) => [`${path}/${name}`, 'return 0']),
      ),
      '"$1/$2"',
      'return 1',
    ),
    shellCase(
      '_flyball_value',
      takers.flatMap(({ path, option }) =>
        names(option).map((name) => [`${path}/${name}`, told(option.value!, line)]),
      ),
      '"$1/$2"',
    ),
    shellCase(
      '_flyball_option',
      all.map(({ path, options }) => [
        path,
        print(options.map(({ long, description }) => line(long, description))),
      ]),
      '"$1"',
    ),
    shellCase(
      '_flyball_argument',
      all.flatMap((each) => argumentRows(each, line)),
      '"$1/$2"',
    ),
  ].join('\n');
}

function names({ long, short }: OptionSpec): string[] {
  return short === undefined ? [long] : [long, short];
}

function argumentRows({ path, commands, arguments: args }: CommandSpec, line: Line) {
  const rows: [string, string][] = [];
  const below = commands.map(({ name, description }) => line(name, description));
  if (args.length === 0 && below.length > 0) rows.push([`${path}/0`, print(below)]);
  for (const [i, { kind, variadic }] of args.entries()) {
    const words = i === 0 && below.length > 0 ? [print(below)] : [];
    const said = [...words, told(kind, line)].filter((part) => part !== ':').join('; ');
    rows.push([`${path}/${i}`, said || ':']);
    // As many as anybody types.
    if (variadic) for (let n = i + 1; n < 20; n++) rows.push([`${path}/${n}`, said || ':']);
  }
  return rows;
}

function told(kind: Kind, line: Line): string {
  if (kind === 'file') return print([':files']);
  if (kind === 'limiter') return print([':limiters']);
  return kind === 'none' ? ':' : print(kind.map((word) => line(word, '')));
}

function print(lines: readonly string[]): string {
  return lines.length === 0 ? ':' : `printf '%s\\n' ${lines.map(quoted).join(' ')}`;
}

/** Keys that do the same share a row. */
function shellCase(name: string, rows: [key: string, does: string][], of: string, otherwise = ':') {
  const byAction = new Map<string, string[]>();
  for (const [key, does] of rows) {
    if (does === otherwise) continue;
    byAction.set(does, [...(byAction.get(does) ?? []), quoted(key)]);
  }
  const lines = [...byAction].map(([does, keys]) => `    ${keys.join('|')}) ${does} ;;`);
  return `${name}() {\n  case ${of} in\n${lines.join('\n')}\n    *) ${otherwise} ;;\n  esac\n}`;
}

/** One word of a shell that runs nothing of it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
