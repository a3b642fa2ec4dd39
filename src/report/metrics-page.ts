/** The page of metrics, a metric at a time: of a thousand limiters it has 66,000 lines, and no turn may wait for all of them. Stage: report. */
import { setImmediate } from 'node:timers/promises';
import type { Metrics } from './metrics.js';

/** As a scrape reads it. The rest of the daemon has its turn after each metric, so they may speak of different moments. */
export async function metricsPage({ registry }: Pick<Metrics, 'registry'>): Promise<string> {
  const parts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    parts.push(await registry.getSingleMetricAsString(name));
    await setImmediate();
  }
  return `${parts.join('\n\n')}\n`;
}
