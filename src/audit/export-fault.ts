/** What keeps an exporter from its place: told once, until it is over; tried again ever more seldom. Stage: audit. */
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import type { Sink } from './sink.js';

export interface ExportFault {
  /** null: nothing keeps it. */
  readonly text: string | null;
  /** Is it time to try? */
  isDue(): boolean;
  failed(error: Error): void;
  worked(): void;
}

const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000];

export function createExportFault(
  { kind, name }: Pick<Sink, 'kind' | 'name'>,
  log: Logger,
  clock: Pick<Clock, 'monotonicMs'>,
): ExportFault {
  let text: string | null = null;
  let failures = 0;
  let retryAtMs = 0;

  return {
    get text() {
      return text;
    },
    isDue: () => clock.monotonicMs() >= retryAtMs,
    failed(error) {
      const first = text === null;
      text = error.message;
      retryAtMs = clock.monotonicMs() + RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!;
      if (!first) return;
      log.error(
        { event: 'audit_export_failed', exporter: name, err: error },
        `Audit logs cannot be exported to ${kind}: ${error.message}. It is tried again; Redis holds them meanwhile.`,
      );
    },
    worked() {
      if (text !== null) {
        log.info(
          { event: 'audit_export_recovered', exporter: name },
          `Audit logs go to ${kind} again.`,
        );
      }
      text = null;
      failures = 0;
      retryAtMs = 0;
    },
  };
}
