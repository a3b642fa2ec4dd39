import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const src = (file: string) => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/** The demo measures what its machine can do: nothing else may run beside it. */
const ALONE = 'test/e2e/demo-play.test.ts';

/** They start no process but Redis and change nothing of their own: files share workers and what these have imported. */
const WITHIN = 'test/{contract,lua,property,unit}/**/*.test.ts';

/** What takes minutes by itself is played by `npm run soak`. */
const LONG = process.env.SUITE_LONG === undefined ? ['test/**/*.long.test.ts'] : [];

/** Longer than a minute: begun last, one worker would end them while the other has nothing left to do. */
const FIRST = /faults\/(?:schedules|killed-in-a-turn)|browser\/dashboard|e2e\/daemon-canary/;

/** The longest files first; then by size, or by how long they took here; the short ones that share workers last. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isFirst = ({ moduleId }: TestSpecification) => FIRST.test(moduleId);
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

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
    sequence: { sequencer: LongestFirst },
    // What hangs, hangs for longer; on a busy machine a minute has been too short to load all of the CLI.
    testTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    // Of those that say they may run beside each other: each has a server and daemons of its own.
    maxConcurrency: 3,
    hookTimeout: 120_000,
    // Thousands of tests with real processes on a busy machine: one is tried again there, and named at the end of the run.
    retry: process.env.CI === undefined ? 0 : 1,
    // Played in the order of their names, within a group. Two cores: suites that start real servers would starve each
    // other beyond two at a time.
    projects: [
      {
        extends: true,
        test: {
          name: 'processes',
          include: ['test/**/*.test.ts'],
          exclude: [ALONE, WITHIN, ...LONG],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'within',
          include: [WITHIN],
          exclude: LONG,
          isolate: false,
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
