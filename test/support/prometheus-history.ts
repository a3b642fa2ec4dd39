/** A past for a private Prometheus: series as OpenMetrics, made blocks of by promtool. Stage: test. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

export interface PastSeries {
  name: string;
  labels: Record<string, string>;
  /** [ms since 1970, value]. */
  samples: [number, number][];
}

/** Fills the data folder of a Prometheus that is not started yet. */
export function writePast(dataFolder: string, series: readonly PastSeries[]): void {
  const file = `${dataFolder}.om`;
  writeFileSync(file, openMetrics(series));
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', file, dataFolder], {
    stdio: 'pipe',
  });
}

/** Series of one name must stand together. */
function openMetrics(series: readonly PastSeries[]): string {
  const lines: string[] = [];
  let last = '';
  for (const { name, labels, samples } of series) {
    const isCounter = name.endsWith('_total');
    const family = isCounter ? name.slice(0, -'_total'.length) : name;
    if (family !== last) lines.push(`# TYPE ${family} ${isCounter ? 'counter' : 'gauge'}`);
    last = family;
    const pairs = Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    for (const [atMs, value] of samples) {
      lines.push(`${name}{${pairs.join(',')}} ${value} ${(atMs / 1000).toFixed(3)}`);
    }
  }
  return `${lines.join('\n')}\n# EOF\n`;
}
