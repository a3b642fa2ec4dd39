/** What tests of the dashboard stand on: Redis, a daemon as it ships, services under load, a gateway, and Chromium. */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { VerbAnswer } from '../../src/api/types.js';
import { writeHistoryRow } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type BadGateway, startBadGateway } from './bad-gateway.js';
import { type DaemonSetup, daemonSetup, policyText, type TestDaemon, until } from './daemon.js';
import { sizeOf } from './dashboard-looks.js';
import { madeUp } from './history.js';
import { startRedis, type TestRedis } from './redis-server.js';

/** Markup, a formula, a text that runs from right to left, and one that is long: no name may do anything. */
export const HOSTILE = {
  markup: '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>',
  formula: '=HYPERLINK("http://example.com")',
  bidi: 'user\u202egnp.exe\u2066',
  long: `tenant:${'long-'.repeat(60)}`,
};

/** A crowded machine may take so long to start a process. */
export const PATIENCE_MS = 120_000;

const LOADS = [
  {
    name: 'checkout',
    perSecond: 60,
    subjects: ['user:41', 'user:42', 'tenant:acme', HOSTILE.markup, HOSTILE.formula, HOSTILE.bidi],
  },
  { name: 'search', perSecond: 30, subjects: ['user:1', 'user:2'] },
  { name: 'payments', perSecond: 20, subjects: ['tenant:acme'] },
  { name: 'reports', perSecond: 10, subjects: ['user:7'] },
  { name: 'orders', perSecond: 10, subjects: ['user:9'] },
];

export const LIMITERS = LOADS.map(({ name }) => name).sort();

/** As `policyText` writes it. */
const MODE = "mode: 'auto'";

const SIGNALS = `
  signals: { p95: telemetry.latency('p95'), errors: telemetry.errorRatio() },
  objective: { p95: { below: '120ms' }, errors: { below: '2%' } },
  control: adaptive(),`;

/** Policies of all limiters, one of them in mode recommend, one with words of a stranger in it. */
function writePolicies(setup: DaemonSetup): void {
  // Pictures are for people.
  const team = process.env.SUITE_SCREENSHOTS ? 'team-checkout' : HOSTILE.markup;
  const owner = `owner: ${JSON.stringify(team)},`;
  setup.write(
    'checkout.ts',
    text('checkout', SIGNALS + owner, 'rate: 40, capacity: 40, inFlightMax: 12'),
  );
  setup.write('search.ts', text('search', SIGNALS));
  setup.write('payments.ts', text('payments', SIGNALS));
  setup.write('orders.ts', text('orders', SIGNALS));
  setup.write('reports.ts', text('reports', SIGNALS).replace(MODE, "mode: 'recommend'"));
}

function text(name: string, more: string, numbers = 'rate: 60, capacity: 60, inFlightMax: 20') {
  return policyText(more, `name: '${name}', ${numbers}`).replace(
    '{ definePolicy }',
    '{ adaptive, definePolicy, telemetry }',
  );
}

function writeWaiting(setup: DaemonSetup, limiter: string, capacity: number, mode = MODE): void {
  const numbers = `rate: 60, capacity: ${capacity}, inFlightMax: 20`;
  const file = text(limiter, `${SIGNALS} reload: 'apply',`, numbers).replace(MODE, mode);
  setup.write(`${limiter}.ts`, file);
}

export interface DashboardStage {
  server: TestRedis;
  gateway: BadGateway;
  /** Address of the page, by the gateway. */
  url: string;
  /** May do everything. */
  token: string;
  daemon(): TestDaemon;
  /** Starts another in place of the last; the gateway leads to it once it listens, and `shown` has come. */
  startDaemon(shown?: Promise<void>): Promise<void>;
  /** Whatever a test that failed half-way has left: the gateway leads to one that lives. */
  needDaemon(): Promise<void>;
  /** Writes the file of a limiter anew, so that it waits to be applied; those of `orders` and `reports` wait from the start. */
  writeWaiting(limiter: string, capacity: number): void;
  /** What a daemon would have recorded of a minute so many minutes ago. */
  storeMinute(limiter: string, ago: number): Promise<void>;
  /** A page of its own with its own cookies; what it says on its console is kept. */
  open(options?: OpenOptions): Promise<OpenPage>;
  /** Does a verb by the API, as another browser would: looks first, then says yes. */
  verb(limiter: string, verb: string, body: Record<string, unknown>): Promise<VerbAnswer>;
  /** Asks the API, as another browser would. */
  ask(path: string): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export interface OpenOptions {
  signedIn?: boolean;
  width?: number;
  theme?: 'light' | 'dark';
}

export interface OpenPage {
  page: Page;
  context: BrowserContext;
  /** Errors and warnings of the console, uncaught exceptions, and requests that left for another host. */
  faults: string[];
}

export function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.SUITE_CHROMIUM ?? '/usr/bin/chromium',
    // Tests run as root in a container, where the sandbox cannot be had and /dev/shm is small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
}

export async function dashboardStage(): Promise<DashboardStage> {
  const server = await startRedis();
  const setup = daemonSetup(server.url);
  writePolicies(setup);
  const data = join(setup.dir, 'data');
  let daemon: TestDaemon;
  let load: ChildProcess | undefined;
  let browser: Browser | undefined;
  const gateway = await startBadGateway('http://127.0.0.1:9');
  const startDaemon = async (shown?: Promise<void>) => {
    daemon = setup.start({
      FLYBALL_DATA_DIR: data,
      FLYBALL_NAME: 'east',
      FLYBALL_AUDIT_FILE: join(setup.dir, 'audit'),
      FLYBALL_TICK_MS: '1000',
      FLYBALL_LEASE_MS: '3000',
    });
    const address = await addressOf(daemon);
    await shown;
    gateway.target = address;
  };
  await startDaemon();
  const token = readFileSync(join(data, 'token'), 'utf8').trim();
  await until(
    'all limiters led',
    async () => {
      const leads = daemon.lines.filter(({ event }) => event === 'lease_taken');
      return leads.length >= LOADS.length;
    },
    PATIENCE_MS,
  );
  // Read while other tests go on: to load files takes seconds on a crowded machine.
  writeWaiting(setup, 'orders', 90);
  writeWaiting(setup, 'reports', 90, "mode: 'recommend'");
  load = fork(fileURLToPath(new URL('dashboard-load.mjs', import.meta.url)), [
    server.url,
    JSON.stringify(LOADS),
  ]);
  const ask = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const headers = { ...init.headers, authorization: `Bearer ${token}` };
    const reply = await fetch(`${gateway.url}/api/v1${path}`, { ...init, headers });
    const answer: unknown = await reply.json();
    if (!reply.ok) throw new Error(JSON.stringify(answer));
    return answer;
  };

  const stage: DashboardStage = {
    server,
    gateway,
    url: gateway.url,
    token,
    daemon: () => daemon,
    startDaemon,
    async needDaemon() {
      const gone = await Promise.race([daemon.exited, Promise.resolve(null)]);
      if (gone !== null) await startDaemon();
      else gateway.target = await addressOf(daemon);
    },
    writeWaiting: (limiter, capacity) => writeWaiting(setup, limiter, capacity),
    async storeMinute(limiter, ago) {
      const redis = server.client();
      const minute = Math.floor(Number((await redis.time())[0]) / 60) - ago;
      const [row] = madeUp({ days: 1 / 1440 });
      await writeHistoryRow(redis, limiterKeys({ name: limiter }), { ...row!, minute });
    },
    async open({ signedIn = true, width = 1280, theme = 'light' } = {}) {
      browser ??= await startChromium();
      const context = await browser.newContext({
        viewport: sizeOf(width),
        colorScheme: theme,
        reducedMotion: 'reduce',
      });
      context.setDefaultTimeout(30_000);
      const page = await context.newPage();
      const faults: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) faults.push(message.text());
      });
      page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
      page.on('request', (request) => {
        const at = request.url();
        if (!at.startsWith(gateway.url) && !at.startsWith('data:')) faults.push(`asked ${at}`);
      });
      page.on('response', (reply) => {
        if (reply.status() >= 500) faults.push(`${reply.status()} ${reply.url()}`);
      });
      if (signedIn) await signIn(context, gateway.url, token);
      return { page, context, faults };
    },
    async verb(limiter, verb, body) {
      const send = async (more: object) =>
        (await ask(`/limiters/${limiter}/${verb}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, ...more }),
        })) as VerbAnswer;
      // The law may have moved it between the look and the word: then it is looked at again, as a person would.
      for (let tries = 1; ; tries++) {
        const { basis, epoch, revision } = await send({ dryRun: true });
        const standsOn = basis === null ? { epoch, revision } : { basis };
        const done = await send(standsOn).catch((error: Error) => error);
        if (!(done instanceof Error)) return done;
        if (tries === 20 || !done.message.includes('API_CHANGED')) throw done;
      }
    },
    ask: async (path) => (await ask(path)) as Record<string, unknown>,
    async close() {
      await browser?.close();
      load?.disconnect();
      await gateway.close();
      await setup.close();
      await server.stop();
    },
  };
  return stage;
}

async function addressOf({ lines }: TestDaemon): Promise<string> {
  const listens = () => lines.find(({ event }) => event === 'http');
  return (await until('the address of the daemon', listens, PATIENCE_MS)).address as string;
}

async function signIn(context: BrowserContext, url: string, token: string): Promise<void> {
  const reply = await context.request.post(`${url}/api/v1/session`, {
    data: { token },
    headers: { 'x-flyball-request': '1', origin: url },
  });
  if (!reply.ok()) throw new Error(`signing in: ${reply.status()} ${await reply.text()}`);
}
