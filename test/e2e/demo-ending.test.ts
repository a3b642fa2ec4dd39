/** Ctrl-C in the middle of the demo: it leaves soon, with 130, and nothing that it started lives on. Stage: tests. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;

/** Pids of all descendants, by the parent column of `ps`. */
function descendants(pid: number): number[] {
  const pairs = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
  const found: number[] = [];
  const visit = (parent: number) => {
    for (const [child, of] of pairs) {
      if (of !== parent) continue;
      found.push(child);
      visit(child);
    }
  };
  visit(pid);
  return found;
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function lineWith(child: ChildProcess, text: string): Promise<void> {
  return new Promise((ok, no) => {
    const said: string[] = [];
    createInterface({ input: child.stderr! }).on('line', (line) => {
      said.push(line);
      if (line.includes(text)) ok();
    });
    child.once('exit', () => no(new Error(`ended before "${text}": ${said.join('\n')}`)));
  });
}

test('SIGINT while it runs ends all of it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'flyball-demo-'));
  const { FLYBALL_REDIS_URL: _none, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, 'demo', '--seconds', '12'], {
    env: { ...env, FLYBALL_DATA_DIR: dataDir },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise<number | null>((ok) => child.once('exit', ok));
  await lineWith(child, 'full speed, cap');
  const started = descendants(child.pid!);
  expect(started.length).toBeGreaterThanOrEqual(4);
  child.kill('SIGINT');
  expect(await exited).toBe(130);
  // An orphan that has ended stands in the table until init has reaped it.
  await expect.poll(() => started.filter(lives)).toEqual([]);
  expect(existsSync(join(dataDir, 'demo', 'redis.json'))).toBe(false);
  rmSync(dataDir, { recursive: true, force: true });
}, 180_000);
