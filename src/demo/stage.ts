/** The stage both plays share: upstream, service and load generator as processes, with what they report. Stage: demo. */

import type { LoadOptions, LoadSecond } from './load-generator.js';
import type { Processes, RunningProcess } from './processes.js';
import type { GuardKind } from './service-guard.js';

export interface Stage {
  /** A fresh checkout process behind the given guard; the load goes to the newest. */
  startService(guard: GuardKind): Promise<RunningProcess>;
  setUpstreamFailing(failing: boolean): void;
  /** Runs the generator to its end. `onSecond` sees each line as it comes. */
  load(
    options: Omit<LoadOptions, 'url' | 'startAtMs'> & { startAtMs?: number },
    onSecond?: (second: LoadSecond) => void,
  ): Promise<LoadSecond[]>;
}

/** How long a fresh process may take before its load begins. */
export const LEAD_MS = 400;

export async function openStage(processes: Processes, databaseUrl: string): Promise<Stage> {
  const upstream = processes.start({
    name: 'payment-upstream',
    module: 'demo/payment-upstream.js',
    channel: true,
  });
  const paymentUrl = await readyUrl(processes, upstream);
  let serviceUrl = '';

  return {
    async startService(guard) {
      const service = processes.start({
        name: `checkout-${guard}`,
        module: 'demo/checkout-service.js',
        channel: true,
        env: {
          GUARD: guard,
          DATABASE_URL: databaseUrl,
          PAYMENT_URL: paymentUrl,
        },
      });
      serviceUrl = await readyUrl(processes, service);
      return service;
    },
    setUpstreamFailing: (failing) => upstream.send({ type: 'upstream', failing }),
    async load(options, onSecond) {
      const seconds: LoadSecond[] = [];
      const startAtMs = options.startAtMs ?? Date.now() + LEAD_MS;
      const generator = processes.start({
        name: 'load-generator',
        module: 'demo/load-generator.js',
        args: [JSON.stringify({ ...options, startAtMs, url: serviceUrl } satisfies LoadOptions)],
        channel: true,
        ends: true,
        onLine(line) {
          const second = JSON.parse(line) as LoadSecond;
          seconds.push(second);
          onSecond?.(second);
        },
      });
      await Promise.race([generator.closed, processes.broken]);
      return seconds;
    },
  };
}

async function readyUrl(processes: Processes, process: RunningProcess): Promise<string> {
  const ready = await Promise.race([
    process.next((message) => message.type === 'ready'),
    processes.broken,
  ]);
  return String(ready.url);
}
