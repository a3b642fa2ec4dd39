/** The GitHub Action that comments the plan: its form, and each of its commands run as the runner would, on a real Redis. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readEntries } from '../../src/actuate/audit.js';
import { MAIN, mustRead } from '../support/cli-run.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

interface Step {
  name?: string;
  id?: string;
  uses?: string;
  if?: string;
  run?: string;
  env?: Record<string, string>;
}
interface Workflow {
  on: Record<string, { paths: string[] }>;
  permissions: Record<string, string>;
  env: Record<string, string>;
  jobs: Record<string, { needs?: string; environment?: string; steps: Step[] }>;
}

const FILE = fileURLToPath(new URL('../../examples/github-action/flyball.yml', import.meta.url));
const workflow = parse(readFileSync(FILE, 'utf8')) as Workflow;
const checkout = { name: 'checkout' };
let server: TestRedis;
let folder: string;

beforeAll(async () => {
  server = await startRedis();
  folder = mkdtempSync(join(tmpdir(), 'flyball-action-'));
  mkdirSync(join(folder, 'bin'));
  mkdirSync(join(folder, 'policies'));
  tool('npx', `shift; exec '${process.execPath}' '${MAIN}' "$@"`);
  tool('gh', `echo "$@" > '${folder}/gh.txt'; cp "\${@: -1}" '${folder}/body.md'`);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.stop();
});

function tool(name: string, body: string) {
  const file = join(folder, 'bin', name);
  writeFileSync(file, `#!/bin/bash\n${body}\n`);
  chmodSync(file, 0o755);
}

const policy = (owner: string) =>
  writeFileSync(
    join(folder, 'policies/checkout.ts'),
    `import { definePolicy } from 'flyball';
export default definePolicy({ limiter: { name: 'checkout', rate: 100, capacity: 200 }, owner: '${owner}' });
`,
  );

/** As GitHub runs it; what it wrote to its outputs. */
function step(job: string, name: string, env: Record<string, string> = {}) {
  const found = workflow.jobs[job]!.steps.find((one) => one.name === name)!;
  const output = join(folder, 'output.txt');
  writeFileSync(output, '');
  const run = spawnSync('bash', ['-e', '-o', 'pipefail', '-c', found.run!], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...{ PATH: `${folder}/bin:${process.env.PATH}`, HOME: folder, GITHUB_OUTPUT: output },
      ...{ FLYBALL_REDIS_URL: server.url, FLYBALL_POLICY_DEADLINE_MS: '120000', ...env },
    },
  });
  return { ...run, output: readFileSync(output, 'utf8') };
}

test('its form: steps use or run, secrets come from secrets, only approved pushes apply', () => {
  expect(Object.keys(workflow.on)).toEqual(['pull_request', 'push']);
  expect(workflow.env.FLYBALL_REDIS_URL).toMatch(/^\$\{\{ secrets\./);
  expect(workflow.permissions).toEqual({ contents: 'read', 'pull-requests': 'write' });
  expect(workflow.jobs.apply).toMatchObject({ needs: 'plan', environment: 'production' });
  for (const { steps } of Object.values(workflow.jobs)) {
    for (const { uses, run = '' } of steps) {
      expect((uses === undefined) !== (run === '')).toBe(true);
      if (uses !== undefined) expect(uses).toMatch(/^actions\/[a-z-]+@v\d+$/);
      // What a pull request may write must come by the environment, never into the text of a script.
      expect(run).not.toContain('${{');
    }
  }
});

test('a pull request has its plan as a comment; a push adopts exactly that; a fault fails the check', async () => {
  policy('pay');
  expect(step('plan', 'Check')).toMatchObject({ status: 0 });
  const planned = step('plan', 'Plan');
  expect(planned).toMatchObject({ status: 0, output: 'changes=yes\n' });
  const commented = step('plan', 'Comment the plan', { PULL: '7' });
  expect(commented.status).toBe(0);
  expect(readFileSync(join(folder, 'gh.txt'), 'utf8')).toMatch(/^pr comment 7 --edit-last/);
  const body = readFileSync(join(folder, 'body.md'), 'utf8');
  expect(body).toMatch(
    /^### flyball plan\n```diff\n\+ checkout .*\n[\s\S]*Plan: 1 to create[\s\S]*```\n$/,
  );

  const applied = step('apply', 'Apply', { AUTHOR: 'ada', COMMIT: 'abc' });
  expect([applied.status, applied.stderr]).toMatchObject([0, expect.any(String)]);
  const redis = server.client();
  expect(await mustRead(redis, checkout)).toMatchObject({ revision: 1 });
  const { entries } = await readEntries(redis, checkout);
  expect(entries[0]!.body.detail).toMatchObject({ why: 'ada, commit abc' });

  expect(step('plan', 'Plan')).toMatchObject({ status: 0, output: '' });
  writeFileSync(join(folder, 'policies/checkout.ts'), 'export default { limiter: { rate: 1 } };');
  expect(step('plan', 'Check').status).not.toBe(0);
  expect(step('plan', 'Plan')).toMatchObject({ output: '' });
  expect(step('plan', 'Plan').status).not.toBe(0);
});
