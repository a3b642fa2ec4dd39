/** What a daemon does for audit logs beside writing them: exports as they grow, signed heads, and trims. Stage: daemon. */
import { readFile } from 'node:fs/promises';
import { retain } from '../actuate/retention.js';
import { prepareFolder } from '../audit/export-folder.js';
import type { ExportState } from '../audit/export-state.js';
import { createExporter, type Exporter } from '../audit/exporter.js';
import { createFileSink } from '../audit/file-sink.js';
import { probePostgres } from '../audit/postgres-driver.js';
import { createPostgresSink } from '../audit/postgres-sink.js';
import { createSigner, type Signer } from '../audit/signature.js';
import type { Sink } from '../audit/sink.js';
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import type { RedisClient } from '../redis/connect.js';
import type { Metrics } from '../report/metrics.js';
import type { AuditConfig } from './config.js';
import { registeredLimiters } from './fleet.js';
import type { ManagedLimiter } from './managed-limiter.js';

export interface AuditLogs {
  /** What keeps audit logs from being exported; null: nothing. */
  fault(): string | null;
  /** Each place that they go to. */
  exports(): ExportState[];
  start(): void;
  /** Ends what runs, and lets others export. Never rejects. */
  close(): Promise<void>;
}

export interface AuditLogsOptions {
  config: AuditConfig;
  redis: RedisClient;
  prefix: string;
  owner: string;
  leaseMs: number;
  limiters: ReadonlyMap<string, ManagedLimiter>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}

const ROUND_MS = 1_000;
const MINUTE_MS = 60_000;
const REGISTRY_MS = 5_000;
/** A place that does not answer must not keep a daemon from stopping. */
const CLOSE_MS = 4_000;

/** Rejects when a place that the settings name cannot be written, or the key cannot be read. */
export async function openAuditLogs(options: AuditLogsOptions): Promise<AuditLogs> {
  const { config, redis, prefix, owner, limiters, clock, log, metrics } = options;
  const signer = await readSigner(config);
  const registered = remembered(clock, () => registeredLimiters(redis, prefix));
  const exporters = (await openSinks(options, signer)).map((sink) =>
    createExporter({
      ...{ redis, prefix, sink, limiters: registered, clock, log },
      seen: seenBy(metrics, sink.kind),
    }),
  );
  const works: { stop(): Promise<void> }[] = [];

  async function trim(): Promise<void> {
    const { keep, keepMost } = config;
    const actor = { kind: 'autopilot' as const, name: owner };
    const names = exporters.map(({ name }) => name);
    for (const limiter of limiters.values()) {
      // Who leads: one in the fleet.
      if (!limiter.leads) continue;
      const { name } = limiter.address;
      try {
        const asked = { keep, keepMost, actor, nowMs: clock.nowMs(), exporters: names };
        const { trimmed, unexported } = await retain(redis, limiter.address, asked);
        if (trimmed === 0) continue;
        metrics.auditTrimmed.inc({ limiter: name, exported: 'yes' }, trimmed - unexported);
        metrics.auditTrimmed.inc({ limiter: name, exported: 'no' }, unexported);
      } catch (error) {
        log.warn(
          { event: 'audit_trim_failed', limiter: name, err: error },
          `The audit log of ${name} could not be trimmed: ${(error as Error).message}. It is tried again.`,
        );
      }
    }
  }

  async function end(): Promise<void> {
    await Promise.all(works.map((work) => work.stop()));
    for (const exporter of exporters) {
      // What was written while the daemon stopped goes along.
      if (works.length > 0) await exporter.minute();
      await exporter.close();
    }
  }

  return {
    fault() {
      const failing = exporters.filter((exporter) => exporter.fault !== null);
      return failing.length === 0
        ? null
        : failing.map(({ kind, fault }) => `${kind}: ${fault}`).join('; ');
    },
    exports: () => exporters.map((exporter) => exporter.state()),
    start() {
      for (const exporter of exporters) works.push(exportOn(exporter, clock));
      works.push(every(MINUTE_MS, trim));
    },
    close: () => within(CLOSE_MS, end),
  };
}

function exportOn(exporter: Exporter, clock: Clock) {
  let minuteAtMs = 0;
  return every(ROUND_MS, async () => {
    if (clock.monotonicMs() < minuteAtMs) return exporter.round();
    minuteAtMs = clock.monotonicMs() + MINUTE_MS;
    await exporter.minute();
  });
}

async function openSinks(options: AuditLogsOptions, signer: Signer | null): Promise<Sink[]> {
  const { config, redis, prefix, owner, leaseMs, clock, log } = options;
  const sinks: Sink[] = [];
  if (config.folder !== undefined) {
    const dir = config.folder;
    const { id } = await prepareFolder(dir);
    const nowMs = () => clock.nowMs();
    const onCut = (file: string, bytes: number) =>
      log.warn(
        { event: 'audit_export_mended', file, bytes },
        `${file} ended in half a line (${bytes} bytes): its writer was killed. It is cut off, and written again.`,
      );
    const given = { dir, id, prefix, maxBytes: config.fileBytes, signer, nowMs };
    sinks.push(createFileSink({ ...given, redis, owner, leaseMs: 3 * leaseMs, onCut }));
  }
  if (config.postgres !== undefined) {
    await probePostgres(config.postgres);
    sinks.push(createPostgresSink({ url: config.postgres, prefix, signer }));
  }
  return sinks;
}

async function readSigner({ key, keyFile }: AuditConfig): Promise<Signer | null> {
  if (key !== undefined) return createSigner(key.replaceAll('\\n', '\n'), 'FLYBALL_AUDIT_KEY');
  if (keyFile === undefined) return null;
  const pem = await readFile(keyFile, 'utf8').catch((error: Error) => {
    throw new FlyballError(
      'FLYBALL_E_AUDIT_KEY',
      `the key that signs audit logs cannot be read: ${error.message}. FLYBALL_AUDIT_KEY_FILE names a PEM file that this user may read.`,
    );
  });
  return createSigner(pem, keyFile);
}

function seenBy(metrics: Metrics, exporter: Sink['kind']) {
  metrics.auditExported.inc({ exporter }, 0);
  metrics.auditExportFailures.inc({ exporter }, 0);
  return {
    exported: (entries: number) => metrics.auditExported.inc({ exporter }, entries),
    failed: () => metrics.auditExportFailures.inc({ exporter }),
    lag: (seconds: number) => metrics.auditExportLag.set({ exporter }, seconds),
    writes: (yes: boolean) => metrics.auditExporting.set({ exporter }, yes ? 1 : 0),
  };
}

/** What was asked for a moment ago is not asked for again. */
function remembered<T>(clock: Clock, ask: () => Promise<T>): () => Promise<T> {
  let known: { value: T; untilMs: number } | null = null;
  return async () => {
    if (known !== null && clock.monotonicMs() < known.untilMs) return known.value;
    const value = await ask();
    known = { value, untilMs: clock.monotonicMs() + REGISTRY_MS };
    return value;
  };
}

/** Works at once and then again and again, never twice at a time; `stop` waits for what runs. */
function every(ms: number, work: () => Promise<void>) {
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  const turn = () => {
    running = work().finally(() => {
      if (!stopped) timer = setTimeout(turn, ms);
    });
  };
  turn();
  return {
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await running;
    },
  };
}

async function within(ms: number, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((ok) => {
    timer = setTimeout(ok, ms);
  });
  await Promise.race([work(), late]).finally(() => clearTimeout(timer));
}
