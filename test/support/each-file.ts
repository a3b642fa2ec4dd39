/** Before each test file: fail it in one sentence when its suite lacks a system package; fix a soak round's seed; second tries. */
import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect } from 'vitest';
import { reviving } from './reviving.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { testPath = '' } = expect.getState();
const [, suite] = relative(root, testPath).split(sep);

// Set by `npm test`: { package: why it is not there and what to do }.
const missing: Record<string, string> = JSON.parse(process.env.SUITE_MISSING ?? '{}');
if (Object.keys(missing).length > 0) {
  const list = JSON.parse(readFileSync(`${root}/scripts/system-packages.json`, 'utf8'));
  for (const name of list.suites[suite ?? ''] ?? []) {
    if (missing[name]) throw new Error(`The suite ${suite} cannot run: ${missing[name]}`);
  }
}

// CI tries the same inputs each time, so that a red run is the change's doing; the soak tries new ones.
const seed = process.env.SUITE_SEED ?? (process.env.CI ? '20261130' : undefined);
if (seed && readFileSync(testPath, 'utf8').includes("'fast-check'")) {
  const { default: fc } = await import('fast-check');
  fc.configureGlobal({ seed: Number(seed) });
}

// Those that run beside others have servers of their own, and others' may be away on purpose.
beforeEach(async ({ task }) => {
  if (!task.result?.retryCount || task.concurrent) return;
  for (const revive of reviving) await revive();
});
