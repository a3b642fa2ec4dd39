/** A private Prometheus for tests: real process, own port and folder, scraping what it is told to; ended by its pid. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './redis-server.js';

export interface TestPrometheus {
  readonly url: string;
  readonly port: number;
  /** SIGSTOP / SIGCONT: the server is there but silent. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export interface PrometheusOptions {
  /** `host:port` of pages to scrape, each once a second. */
  targets?: string[];
  /** Puts a past into the data folder before it starts. */
  prepare?: (dataFolder: string) => void;
  /** A path before its API. */
  prefix?: string;
  /** Text of `--web.config.file`: users, certificates. */
  webConfig?: string;
  /** What tells that it is up; with users or TLS it is not a plain GET. */
  ready?: (url: string) => Promise<boolean>;
}

export async function startPrometheus(options: PrometheusOptions): Promise<TestPrometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-prometheus-'));
  const port = await freePort();
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '900ms' },
    scrape_configs: [{ job_name: 'shop', static_configs: [{ targets: options.targets ?? [] }] }],
  };
  // JSON is YAML too.
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify(config));
  options.prepare?.(join(dir, 'data'));
  const { prefix = '' } = options;
  const web = join(dir, 'web.yml');
  if (options.webConfig !== undefined) writeFileSync(web, options.webConfig);
  const child = spawn(
    process.env.SUITE_PROMETHEUS ?? 'prometheus',
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      `--web.route-prefix=${prefix || '/'}`,
      '--log.level=error',
      ...(options.webConfig === undefined ? [] : [`--web.config.file=${web}`]),
    ],
    { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2000);
  });
  const url = `http://127.0.0.1:${port}${prefix}`;
  const isReady = options.ready ?? (async () => (await fetch(`${url}/-/ready`)).ok);
  await until(
    child,
    () => said,
    () => isReady(url),
  );
  return {
    url,
    port,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Waits for a server of ours; one that ended instead is an error with what it said. */
export async function until(
  child: ChildProcess,
  said: () => string,
  isReady: () => Promise<boolean>,
): Promise<void> {
  let failed: Error | undefined;
  child.once('error', (error) => {
    failed = error;
  });
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    if (failed) throw failed;
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${said()}`);
    if (await isReady().catch(() => false)) return;
    await new Promise((ok) => setTimeout(ok, 50));
  }
  throw new Error(`not ready within 60 s: ${said()}`);
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise((ok) => child.once('exit', ok));
  child.kill('SIGCONT');
  child.kill('SIGTERM');
  const harder = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(harder);
}
