/** The page of metrics: what the registry says, with room between its metrics for turns. */
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/report/metrics.js';
import { metricsPage } from '../../src/report/metrics-page.js';

test('the page holds each metric once, as the registry says it', async () => {
  const metrics = createMetrics('daemon');
  for (const limiter of ['a', 'b']) metrics.tickDuration.observe({ limiter }, 0.02);
  metrics.lastSeen.keep('lease', 'a', () => metrics.leaseHeld.set({ limiter: 'a' }, 1));
  const ours = (page: string) => page.split('\n').filter((line) => /flyball_/.test(line));
  const page = ours(await metricsPage(metrics));
  expect(page).toContain('flyball_actuate_lease_held{limiter="a"} 1');
  expect(page).toContain('flyball_daemon_tick_duration_seconds_count{limiter="b"} 1');
  expect(page).toEqual(ours(await metrics.registry.metrics()));
});

test('what else the process has to do is not kept waiting for the whole page', async () => {
  const metrics = createMetrics('daemon');
  let turns = 0;
  let done = false;
  const turn = () => {
    turns += 1;
    if (!done) setImmediate(turn);
  };
  setImmediate(turn);
  await metricsPage(metrics);
  done = true;
  expect(turns).toBeGreaterThan(20);
});
