/** Runs one policy file in a process of its own and sends what it exports, as plain data. Stage: policy. */
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { codeOf } from './code.js';
import { customFunctions, refer } from './custom-function.js';
import { importPolicyFile } from './import-file.js';
import { plainData } from './plain.js';

export type ChildReply =
  | { kind: 'value'; value: unknown }
  | { kind: 'faults'; faults: { field: string; message: string; line?: number }[] };

async function evaluate(file: string): Promise<ChildReply> {
  const fault = (message: string, line?: number): ChildReply => ({
    kind: 'faults',
    faults: [{ field: '', message, ...(line === undefined ? {} : { line }) }],
  });
  if (readFileSync(file, 'utf8').trim() === '') {
    return fault('the file is empty. Write: export default definePolicy({ … })');
  }
  let module: Record<string, unknown>;
  try {
    module = await importPolicyFile(file);
  } catch (error) {
    const { message, line } = await explain(error, file);
    return fault(message, line);
  }
  if (module.default === undefined) {
    return fault('the file has no default export. Write: export default definePolicy({ … })');
  }
  const { value, faults } = plainData(module.default);
  refer(value, customFunctions(module.default).keys(), codeOf(file));
  return faults.length > 0 ? { kind: 'faults', faults } : { kind: 'value', value };
}

/** 1 GB: a policy is a few kilobytes, and reading TypeScript takes about a tenth of it. */
const MOST_MEMORY = 1e9;
/** Longest text of somebody else's that a fault repeats. */
const LONGEST = 300;

async function explain(error: unknown, file: string): Promise<{ message: string; line?: number }> {
  const text = String(error instanceof Error ? error.message : error);
  const first = shortened(text.split('\n')[0]!.trim());
  if (first.startsWith('ParseError:')) {
    // jiti says `ParseError: <what>` and on the next line ` <file>:<line>:<column>`.
    const place = /:(\d+):(\d+)\s*$/.exec(text);
    const what = first.slice('ParseError:'.length).trim();
    return {
      message: `is not TypeScript: ${what}${place ? ` (column ${Number(place[2]) + 1})` : ''}. Is it half-written? Try: npx tsc --noEmit`,
      ...(place ? { line: Number(place[1]) } : {}),
    };
  }
  if (first.startsWith('Unknown file extension')) {
    return {
      message:
        'is no TypeScript file. A policy is a .ts file with export default definePolicy({ … })',
    };
  }
  const stack = error instanceof Error ? String(error.stack) : '';
  const frame = stack.split('\n').find((row) => row.includes(`${file}:`));
  const row = Number(frame ? /:(\d+):\d+\)?$/.exec(frame)?.[1] : Number.NaN);
  // jiti keeps lines, but moves imports up: a line is only sure when all imports stand above it.
  const rows = readFileSync(file, 'utf8').split('\n');
  const sure = row > rows.findLastIndex((text) => /^\s*import\b/.test(text)) + 1;
  const hint = await hintFor(first);
  return {
    message: `throws when it is loaded: ${first}.${hint}`,
    ...(sure ? { line: row } : {}),
  };
}

/** Empty, or a sentence that begins with a space. */
async function hintFor(message: string): Promise<string> {
  const words = Object.keys(await import('./author.js'));
  const [, name = ''] = /^(\w+) is not defined/.exec(message) ?? [];
  if (words.includes(name)) return ` Write above it: import { ${name} } from 'flyball';`;
  if (!/is not a function|of undefined/.test(message)) return '';
  return ` Inside a policy, 'flyball' exports: ${words.join(', ')}.`;
}

function shortened(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

const [, , file, deadlineMs] = process.argv;
if (file !== undefined && process.send) {
  // Whoever started this may be gone before its deadline: a file that loops must not outlive it for long. Nor may
  // it take the machine's memory: buffers are outside the limit of the heap.
  new Worker(
    `const end = () => process.kill(process.pid, 'SIGKILL');
    setTimeout(end, ${Number(deadlineMs) + 5000});
    setInterval(() => process.memoryUsage.rss() > ${MOST_MEMORY} && end(), 50);`,
    { eval: true },
  );
  process.send('started');
  const reply = await evaluate(file).catch(
    (error?: Error): ChildReply => ({
      kind: 'faults',
      faults: [{ field: '', message: `cannot be read: ${shortened(String(error?.message))}` }],
    }),
  );
  // A timer or socket that the file left open must not keep this process.
  process.send(reply, () => process.exit(0));
}
