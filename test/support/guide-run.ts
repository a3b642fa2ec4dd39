/** Runs the commands that a guide shows and compares what they say; `WRITE_GUIDES=1` writes what they say into the guide. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { actorName } from '../../src/cli/change.js';
import { runCli } from '../../src/cli/program.js';
import { ROOT, read } from './source-tree.js';

export interface Shown {
  /** Prepared state, by name; empty: as the command before left it. */
  scene: string;
  exit: number;
  /** Words after `flyball`. */
  args: string[];
  command: string;
  output: string;
  /** What of the output the guide shows, where it does not show all: lines that have this in them. */
  only: RegExp | null;
}

const BLOCK =
  /<!-- run:(?: scene=([\w-]+))?(?: exit=(\d+))?(?: only=(.*?))? -->\n```console\n\$ (.*)\n([\s\S]*?)```/g;

export function shownIn(path: string): Shown[] {
  return [...read(path).matchAll(BLOCK)].map(([, scene, exit, only, command, output]) => ({
    ...{ scene: scene ?? '', exit: Number(exit ?? 0), command: command!, output: output! },
    args: wordsOf(command!).slice(1),
    only: only ? new RegExp(only) : null,
  }));
}

/** As a shell splits a line without variables. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, a, b, c]) => a ?? b ?? c ?? '',
  );
}

/** Both streams as a person sees them, in order. */
export async function seen(
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number; text: string }> {
  let text = '';
  const stream = () => {
    const through = Object.assign(new PassThrough(), { columns: 110 });
    through.on('data', (chunk) => {
      text += chunk;
    });
    return through;
  };
  const [stdout, stderr] = [stream(), stream()];
  const code = await runCli(args, {
    ...{ stdin: new PassThrough(), stdout, stderr },
    env: { NO_COLOR: '1', ...env },
  });
  return { code, text };
}

/** What a person at another machine and hour would see the same. */
export function settled(text: string): string {
  return text
    .replace(/[\w.-]+@[\w.-]+ \(unverified\)/g, 'WHO')
    .replace(/laptop:\d+:[0-9a-f]+/g, 'PROCESS')
    .replace(/\d{4}-\d\d-\d\d/g, 'DAY')
    .replace(/\d\d:\d\d(:\d\d)?/g, 'TIME')
    .replace(/DAY TIME|DAYTTIME/g, 'TIME')
    .replace(/\d+ (ms|s|min|h|d)( \d+ (s|min|h))?(?![\w/])/g, 'SPAN')
    .replace(/--for \d+m/g, '--for SPAN')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:6379')
    .replace(/-p \d+/g, '-p 6379')
    .replace(/\b[0-9a-f]{12,64}\b/g, 'HASH')
    .replace(/\d{13}-\d+/g, 'ID')
    .replace(/\/\S*\/(?=[\w.-]+\.ts)/g, '')
    .replace(/─+/g, '─')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The lines that the guide shows of it. */
export function part(text: string, only: RegExp | null): string {
  if (only === null) return text;
  return text
    .split('\n')
    .filter((line) => only.test(line))
    .join('\n');
}

/** Puts what the commands said in place of what stands in the guide. */
export function writeGuide(path: string, said: readonly string[]): void {
  let i = 0;
  const text = read(path).replace(BLOCK, (block, _scene, _exit, _only, command) => {
    const output = said[i++]!;
    const head = block.slice(0, block.indexOf(`$ ${command}`));
    return `${head}$ ${command}\n${clear(output)}\n\`\`\``;
  });
  writeFileSync(join(ROOT, path), text);
}

/** When the guides are told. */
const TOLD_MS = Date.UTC(2026, 4, 4, 6, 40, 5);

/** A guide tells of nobody's machine, and of one morning. */
function clear(output: string): string {
  return told(output, TOLD_MS - Date.now())
    .replaceAll(actorName(), 'you@laptop (unverified)')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:6379')
    .replace(/-p \d+/g, '-p 6379')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd();
}

/** All times, moved as one. */
function told(text: string, byMs: number): string {
  const moved = (whole: string, day: string | undefined, at: string) => {
    const atMs = Date.parse(`${day ?? '2026-01-02'}T${at.padEnd(8, ':00')}Z`);
    if (Number.isNaN(atMs)) return whole;
    const [, date = '', time = ''] =
      /^(.*)T(\d\d:\d\d:\d\d)/.exec(new Date(atMs + byMs).toISOString()) ?? [];
    const words = time.slice(0, at.length);
    return day === undefined ? words : `${date}${whole[10]}${words}`;
  };
  return text.replace(/(?:(\d{4}-\d\d-\d\d)[ T])?(?<![\d:])(\d\d:\d\d(?::\d\d)?)(?![\d:])/g, moved);
}
