/** Everything a fault schedule acts on, as real processes: Redis with or without a replica, daemons, services, proxies. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { EXIT } from '../../src/errors.js';
import {
  MOVED,
  movedPolicy,
  ownOf,
  type PolicyChoices,
  scaleOf,
  WATCHED,
  watchedPolicy,
  writePolicies,
} from './fault-policies.js';
import type { Heard, ServiceLine } from './fault-record.js';
import { startSentinel, type TestSentinel } from './redis-sentinel.js';
import { startRedis, type TestRedis } from './redis-server.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';

export interface RigOptions extends Omit<PolicyChoices, 'page' | 'pace'> {
  /** `plain` forgets all when it dies, `kept` nothing; `pair` has a replica, `sentinel` that and three Sentinels. */
  redis: 'plain' | 'kept' | 'pair' | 'sentinel';
  daemons: number;
  services: number;
  /** The last daemon has another policy for the limiter that moves. */
  differ: boolean;
  perSecond: number;
  /** 1: ticks of 100 ms and leases of 500 ms; more on a machine that cannot keep to that. */
  pace?: number;
}

export interface Member {
  readonly name: string;
  readonly proxy: TcpProxy;
  child: ChildProcess | null;
}

export interface Rig {
  readonly options: RigOptions;
  readonly daemons: readonly Member[];
  readonly services: readonly Member[];
  /** Processes ask the Sentinels, and go past all proxies. */
  readonly sentinel: TestSentinel | null;
  /** The server that takes writes, and the one that follows it. */
  master: TestRedis;
  replica: TestRedis | null;
  /** What the signal's page does: answers, hangs, is late, or lies. */
  readonly page: { mode: 'well' | 'dead' | 'slow' | 'lying' };
  readonly allowed: ReadonlyMap<string, Set<string>>;
  /** Straight to the master, past all proxies; gives up soon. */
  redis(): Redis;
  startDaemon(member: Member, log?: 'file' | 'full'): void;
  startService(member: Member): void;
  /** What `fault-inside.mjs` in that daemon is to do. */
  order(member: Member, orders: { shiftMs?: number; blockMs?: number }): void;
  /** Tells every service how its work goes, those that start later too. */
  work(how: { failing?: boolean; latencyMs?: number }): void;
  policyFile(member: Member): string;
  /** All proxies lead to this server, all connections are cut. */
  leadTo(server: TestRedis): void;
  lines(): ServiceLine[];
  /** The end of one service's log. */
  newest(service: string): ServiceLine[];
  /** What Redis answered the services, by their own clients. */
  heard(): Heard[];
  /** Daemons that ended though nobody killed them, and how. */
  readonly died: string[];
  close(): Promise<void>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DEADLINE_MS = 100;
const LIES = ['NaN', '-5', '1e308', '+Inf', '0', '9999999'];
export const deadlineMs = DEADLINE_MS;

export async function startRig(options: RigOptions): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-faults-'));
  const kept = ['--appendonly', 'yes', '--appendfsync', 'always'];
  const sentinel = options.redis === 'sentinel' ? await startSentinel() : null;
  const master =
    (await sentinel?.master()) ?? (await startRedis(options.redis === 'kept' ? kept : []));
  const replica =
    options.redis === 'pair'
      ? await startRedis(['--replicaof', '127.0.0.1', String(master.port)])
      : null;
  const page: Rig['page'] = { mode: 'well' };
  const pages = await servePage(page);
  const url = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/metrics`;
  const { pace = 1 } = options;
  const choices: PolicyChoices = { ...options, page: url, pace };
  const member = async (name: string): Promise<Member> => ({
    name,
    proxy: await startProxy(master.port),
    child: null,
  });
  const many = (count: number, prefix: string) =>
    Promise.all(Array.from({ length: count }, (_, i) => member(`${prefix}-${i}`)));
  const daemons = await many(options.daemons, 'daemon');
  const services = await many(options.services, 'service');

  const allowed = new Map([
    [MOVED, new Set<string>()],
    [WATCHED, new Set<string>()],
  ]);
  for (const [i, { name }] of daemons.entries()) {
    const other = options.differ && i === daemons.length - 1;
    const own = [movedPolicy(choices, other ? 90 : 120), watchedPolicy(choices)];
    const [moved = '', watched = ''] = writePolicies(join(dir, name), own);
    allowed.get(MOVED)!.add(moved);
    allowed.get(WATCHED)!.add(watched);
  }

  const clients = new Map<TestRedis, Redis>();
  const children: ChildProcess[] = [];
  let work: object = {};
  const start = (member: Member, args: string[], env: NodeJS.ProcessEnv, out: number) => {
    const stdio = ['ignore', out, out, 'ipc'] as const;
    const child = spawn(process.execPath, args, { cwd: dir, env, stdio: [...stdio] });
    child.on('error', () => {});
    children.push(child);
    member.child = child;
  };
  // Whoever ends this process leaves nobody behind.
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL');
    for (const server of sentinel?.servers ?? [master, replica]) if (server) endNow(server.pid);
    sentinel?.endNow();
  };
  process.once('exit', killAll);
  const { PATH, HOME } = process.env;

  const lastLines = (file: string) => readFileSync(join(dir, file), 'utf8').slice(-600);
  const died: string[] = [];
  let closing = false;
  const urlOf = ({ proxy }: Member) => sentinel?.url ?? `redis://127.0.0.1:${proxy.port}`;
  const rig: Rig = {
    died,
    ...{ options, daemons, services, sentinel, master, replica, page, allowed },
    redis() {
      let client = clients.get(rig.master);
      if (client === undefined) {
        client = rig.master.client({
          ...{ commandTimeout: 400, maxRetriesPerRequest: 0, enableOfflineQueue: false },
          retryStrategy: () => 30,
        });
        clients.set(rig.master, client);
      }
      return client;
    },
    startDaemon(member, log = 'file') {
      const out = openSync(log === 'full' ? '/dev/full' : join(dir, `${member.name}.log`), 'a');
      const inside = join(ROOT, 'test/support/fault-inside.mjs');
      start(
        member,
        [`--import=${inside}`, join(ROOT, 'dist/cli/main.js'), 'run'],
        {
          ...{ PATH, HOME },
          FLYBALL_NAME: member.name,
          FLYBALL_REDIS_URL: urlOf(member),
          FLYBALL_POLICIES: join(dir, member.name),
          FLYBALL_DATA_DIR: join(dir, 'data'),
          FLYBALL_TICK_MS: String(100 * pace),
          FLYBALL_LEASE_MS: String(500 * pace),
          FLYBALL_RELOAD_MS: '200',
          FLYBALL_POLICY_DEADLINE_MS: '300000',
          FLYBALL_REDIS_WAIT_MS: '120000',
          FLYBALL_HTTP_PORT: '0',
        },
        out,
      );
      member.child!.once('exit', (code, signal) => {
        // It began while Redis was away, and is started again, as deploy/systemd does.
        if (code === EXIT.redisUnreachable && !closing) rig.startDaemon(member, log);
        else if (signal !== 'SIGKILL') {
          const said = log === 'file' ? `: ${lastLines(`${member.name}.log`)}` : '';
          died.push(`${member.name} ended by itself with ${code ?? signal}${said}`);
        }
      });
    },
    startService(member) {
      const numbers = ownOf(options.draw);
      const perSecond = options.perSecond * scaleOf(options.draw);
      const config = {
        ...{ url: urlOf(member), name: member.name },
        ...{ log: join(dir, `${member.name}.jsonl`), wire: join(dir, `${member.name}.wire.jsonl`) },
        deadlineMs: DEADLINE_MS,
        limiters: [
          { name: MOVED, ...numbers, perSecond },
          { name: WATCHED, rate: 15, capacity: 8, perSecond: 12 },
        ],
      };
      const script = join(ROOT, 'test/support/fault-service.mjs');
      const out = openSync(join(dir, `${member.name}.log`), 'a');
      start(member, [script, JSON.stringify(config)], { PATH, HOME }, out);
      member.child!.send(work, () => {});
    },
    order({ child }, what) {
      if (child?.connected) child.send(what, () => {});
    },
    work(how) {
      work = { ...work, ...how };
      for (const { child } of services) if (child?.connected) child.send(work, () => {});
    },
    policyFile: ({ name }) => join(dir, name, `${MOVED}.ts`),
    leadTo(server) {
      rig.master = server;
      for (const { proxy } of [...daemons, ...services]) {
        proxy.targetPort = server.port;
        proxy.cut();
      }
    },
    lines: () => services.flatMap(({ name }) => readLines<ServiceLine>(join(dir, `${name}.jsonl`))),
    newest: (name) => readLines<ServiceLine>(join(dir, `${name}.jsonl`), 4_000),
    heard: () => services.flatMap(({ name }) => readLines<Heard>(join(dir, `${name}.wire.jsonl`))),
    async close() {
      closing = true;
      for (const child of children) {
        child.kill('SIGCONT');
        child.kill('SIGKILL');
      }
      await Promise.all(children.map(gone));
      for (const { proxy } of [...daemons, ...services]) await proxy.close();
      pages.closeAllConnections();
      pages.close();
      await (sentinel ?? master).stop();
      await replica?.stop();
      process.off('exit', killAll);
      rmSync(dir, { recursive: true, force: true });
    },
  };
  for (const each of services) rig.startService(each);
  for (const each of daemons) rig.startDaemon(each);
  return rig;
}

/** Resolves when the process is no more. */
export async function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  await new Promise((ok) => child.once('exit', ok));
}

function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

export function alive({ child }: Member): boolean {
  return child !== null && child.exitCode === null && child.signalCode === null;
}

/** Of `bytes`, only the end. */
function readLines<Line>(path: string, bytes = Number.POSITIVE_INFINITY): Line[] {
  if (!existsSync(path)) return [];
  const file = openSync(path, 'r');
  const { size } = fstatSync(file);
  const buffer = Buffer.alloc(Math.min(size, bytes));
  readSync(file, buffer, 0, buffer.length, size - buffer.length);
  closeSync(file);
  // A process that was killed may have left half a line, and the end may begin within one.
  return buffer
    .toString()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
}

async function servePage(page: Rig['page']): Promise<Server> {
  let asked = 0;
  const server = createServer((_request, response) => {
    const text = (value: string) => `# TYPE queue_depth gauge\nqueue_depth ${value}\n`;
    const answer = () => void response.end(text('12'));
    asked += 1;
    if (page.mode === 'well') answer();
    else if (page.mode === 'slow') setTimeout(answer, 900).unref();
    else if (page.mode === 'lying') response.end(text(LIES[asked % LIES.length]!));
    // Dead: it accepts, and never answers.
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  return server;
}

/** How slow this machine is now: 1 while a process starts within 150 ms, at most 8. */
export async function machinePace(): Promise<number> {
  const fromMs = performance.now();
  await gone(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }));
  return Math.min(8, Math.max(1, Math.round((performance.now() - fromMs) / 100)));
}
