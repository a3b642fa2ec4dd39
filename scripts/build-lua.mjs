// Reads lua/*.lua, checks each header against its body, resolves includes, and writes src/redis/scripts.gen.ts.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const SECTIONS = ['KEYS', 'ARGV', 'RETURNS', 'TIME', 'COMPLEXITY'];
const FORBIDDEN = [
  [/\bredis\.log\b/, 'redis.log'],
  [/call\(\s*['"]KEYS['"]/i, 'the KEYS command'],
  [/\bwhile\b|\brepeat\b|\bgoto\b/, 'a loop without a bound (while, repeat)'],
  [/\bredis\.(pcall|setresp|breakpoint|debug)\b/, 'redis.pcall, setresp, breakpoint or debug'],
  [/\bmath\.random|\bos\.|\bloadstring\b/, 'random numbers, os or loadstring'],
];

/** One script, read and checked. Throws an Error that lists every fault of the file. */
export function readScript(folder, file) {
  const name = file.replace(/\.lua$/, '');
  const text = readFileSync(join(folder, file), 'utf8');
  const faults = [];
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--') || line.startsWith('---'));
  const header = lines.slice(0, end).map((line) => line.replace(/^-- ?/, ''));
  const { purpose, sections } = readHeader(name, header, faults);
  const body = include(folder, file, lines.slice(end).join('\n'), faults);
  const keys = declared(sections.KEYS, 'KEYS', faults);
  const args = declared(sections.ARGV, 'ARGV', faults);
  checkUse(body, 'KEYS', keys, faults);
  checkUse(body, 'ARGV', args, faults);
  for (const [pattern, what] of FORBIDDEN) {
    if (pattern.test(stripComments(body))) faults.push(`the body uses ${what}`);
  }
  if (sections.TIME !== undefined && /never/.test(sections.TIME) === /'TIME'/.test(body)) {
    faults.push(`TIME says "${sections.TIME}", the body says otherwise`);
  }
  if (faults.length > 0) {
    throw new Error(faults.map((fault) => `lua/${file}: ${fault}`).join('\n'));
  }
  const lua = `-- flyball ${name}\n${stripComments(body).trim()}\n`;
  const sha = createHash('sha1').update(lua).digest('hex');
  return {
    name,
    purpose,
    keys,
    args,
    returns: sections.RETURNS,
    complexity: sections.COMPLEXITY,
    lua,
    sha,
  };
}

function readHeader(name, header, faults) {
  const sections = {};
  let section;
  const purpose = [];
  for (const line of header) {
    const start = /^([A-Z]+):(.*)$/.exec(line);
    if (start && SECTIONS.includes(start[1])) {
      section = start[1];
      if (sections[section] !== undefined) faults.push(`section ${section} stands twice`);
      sections[section] = start[2].trim();
    } else if (section === undefined) purpose.push(line.trim());
    else sections[section] += `\n${line}`;
  }
  const missing = SECTIONS.filter((each) => sections[each] === undefined);
  if (missing.length > 0) faults.push(`the header has no ${missing.join(', ')}`);
  for (const each of SECTIONS) if (sections[each]?.trim() === '') faults.push(`${each} is empty`);
  if (!purpose[0]?.startsWith(`${name}: `))
    faults.push(`the header begins with "${name}: " and its purpose`);
  return { purpose: purpose.join(' ').slice(name.length + 2), sections };
}

/** `  name   meaning` lines; a name that ends in `...` repeats. */
function declared(text, what, faults) {
  if (text === undefined || text.trim() === 'none') return [];
  const out = [];
  for (const line of text.split('\n')) {
    const entry = /^ {2}([a-z][A-Za-z]*(?:\.\.\.)?)\s{2,}(\S.*)$/.exec(line);
    if (entry) out.push({ name: entry[1], meaning: entry[2] });
    else if (line.trim() !== '' && !/^ {4,}\S/.test(line))
      faults.push(`${what}: cannot read "${line}"`);
  }
  if (out.slice(0, -1).some((each) => each.name.endsWith('...')))
    faults.push(`${what}: only the last may repeat`);
  if (new Set(out.map((each) => each.name)).size < out.length)
    faults.push(`${what}: a name stands twice`);
  return out;
}

function checkUse(body, what, names, faults) {
  const code = stripComments(body);
  const repeats = names.at(-1)?.name.endsWith('...') ?? false;
  const fixed = repeats ? names.length - 1 : names.length;
  const used = new Set();
  for (const [, index] of code.matchAll(new RegExp(`\\b${what}\\[(\\d+)\\]`, 'g')))
    used.add(Number(index));
  for (const index of used) {
    if (index > names.length)
      faults.push(`the body uses ${what}[${index}], which the header does not declare`);
  }
  const open = new RegExp(
    `#${what}\\b|unpack\\(${what}|\\b${what}\\[[^\\]\\d]|\\b${what}\\[\\d+ *\\+|\\bpairs\\(${what}`,
  ).test(code);
  if (open && !repeats)
    faults.push(`the body walks over ${what}, but the header declares no repeated name`);
  if (repeats && !open)
    faults.push(`the header declares ${names.at(-1).name}, but the body never walks over ${what}`);
  for (let index = 1; index <= fixed; index++) {
    if (!used.has(index))
      faults.push(
        `the header declares ${names[index - 1].name}, but the body never uses ${what}[${index}]`,
      );
  }
}

/**
 * `--- @include lib/x.lua` is replaced by that file, indented as the line is. A missing file is a fault, and so is a
 * second copy of functions; a part without functions may stand in several branches.
 */
function include(folder, file, text, faults, seen = new Set()) {
  return text.replace(/^([ \t]*)--- @include (\S+)[ \t]*$/gm, (_line, indent, path) => {
    let part;
    try {
      part = readFileSync(join(folder, path), 'utf8');
    } catch {
      faults.push(`includes ${path}, which does not exist`);
      return '';
    }
    if (seen.has(path) && /^local function/m.test(part)) faults.push(`includes ${path} twice`);
    seen.add(path);
    if (!/^-- [a-z]+: \S/.test(part)) faults.push(`${path} does not begin with "-- name: purpose"`);
    const lines = include(folder, file, part.trimEnd(), faults, seen).split('\n');
    return lines.map((line) => (line === '' ? '' : indent + line)).join('\n');
  });
}

/** Comments that begin a line or follow code after two spaces; strings of ours hold no `--`. */
function stripComments(code) {
  return code
    .split('\n')
    .map((line) => line.replace(/(^|\s)--.*$/, '').trimEnd())
    .filter((line) => line !== '')
    .join('\n');
}

function typed(script) {
  const tuple = (names) =>
    names
      .map((each) =>
        each.name.endsWith('...')
          ? `...${each.name.slice(0, -3)}: string[]`
          : `${each.name}: string`,
      )
      .join(', ');
  const type = script.name[0].toUpperCase() + script.name.slice(1);
  const argType = tuple(script.args).replace(/: string/g, ': ScriptArg');
  return `/** Keys of \`${script.name}\`, in order. */
export type ${type}Keys = [${tuple(script.keys)}];
/** Arguments of \`${script.name}\`, in order. */
export type ${type}Args = [${argType}];
/**
 * ${script.purpose}
 * Returns ${script.returns.replace(/\n\s*/g, ' ')}. ${script.complexity}.
 */
export const ${script.name}Script: Script<${type}Keys, ${type}Args> = {
  name: '${script.name}',
  sha: '${script.sha}',
  lua: ${JSON.stringify(script.lua).replace(/\\n/g, '\\n\\\n')},
};
`;
}

/** The text of the generated module for a folder of scripts. */
export function generate(folder = join(ROOT, 'lua')) {
  const faults = [];
  const scripts = [];
  for (const file of readdirSync(folder)
    .filter((each) => each.endsWith('.lua'))
    .sort()) {
    try {
      scripts.push(readScript(folder, file));
    } catch (error) {
      faults.push(error.message);
    }
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return `/** Generated from lua/*.lua by scripts/build-lua.mjs; do not edit. Stage: enforce, actuate. */

export type ScriptArg = string | number;

/** A script as Redis gets it; the type parameters name its keys and arguments. */
export interface Script<Keys extends string[], Args extends ScriptArg[]> {
  readonly name: string;
  readonly sha: string;
  readonly lua: string;
  /** Never set: carries the types. */
  readonly types?: { keys: Keys; args: Args };
}

${scripts.map(typed).join('\n')}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = join(ROOT, 'src/redis/scripts.gen.ts');
  try {
    const text = generate();
    let old = '';
    try {
      old = readFileSync(target, 'utf8');
    } catch {}
    if (text !== old) writeFileSync(target, text);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
