import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = (file: string) => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/** The demo measures what its machine can do: nothing else may run beside it. */
const ALONE = 'test/e2e/demo-{play,ending}.test.ts';

/** What takes minutes by itself is played by `npm run soak`. */
const LONG = process.env.SUITE_LONG === undefined ? ['test/**/*.long.test.ts'] : [];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^flyball$/, replacement: src('index.ts') },
      { find: /^flyball\/testing$/, replacement: src('testing.ts') },
    ],
  },
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/each-file.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 120_000,
    // Thousands of tests with real processes on a busy machine: one is tried again there, and named at the end of the run.
    retry: process.env.CI === undefined ? 0 : 1,
    projects: [
      {
        extends: true,
        test: {
          name: 'all',
          include: ['test/**/*.test.ts'],
          exclude: [ALONE, ...LONG],
          // Two cores: suites that start real servers would starve each other beyond two at a time.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: [ALONE],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
