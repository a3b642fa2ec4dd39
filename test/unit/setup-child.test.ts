/** A task runs its command as if it were the command: exit code, signals, streams. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const CHILD = fileURLToPath(new URL('../../scripts/child.mjs', import.meta.url));

function run(command: string, options = '{}') {
  const code = `import(${JSON.stringify(CHILD)}).then(async ({ runChild }) => {
    process.exitCode = await runChild(['sh', '-c', ${JSON.stringify(command)}], ${options});
  })`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    said.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    said.stderr += chunk;
  });
  const ended = new Promise<number | null>((ok) => child.once('close', ok));
  return { child, said, ended };
}

test.each([
  ['exit 0', 0],
  ['exit 7', 7],
  ['kill -9 $$', 137],
])('%s → %i', async (command, code) => {
  expect(await run(command).ended).toBe(code);
});

test('a command that cannot be started is 127', async () => {
  const missing = run('exec /no/such/program');
  expect(await missing.ended).toBe(127);
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s is handed on once, and its end waited for',
  async (signal) => {
    const name = signal.slice(3);
    const { child, said, ended } = run(
      `trap 'echo got; exit 5' ${name}; echo up; while :; do sleep 0.05; done`,
    );
    await expect.poll(() => said.stdout, { timeout: 20_000 }).toBe('up\n');
    child.kill(signal);
    expect(await ended).toBe(5);
    expect(said.stdout).toBe('up\ngot\n');
  },
);

test('quietStdout keeps stdout for a result', async () => {
  const { said, ended } = run('echo noise', '{ quietStdout: true }');
  await ended;
  expect(said).toEqual({ stdout: '', stderr: 'noise\n' });
});
