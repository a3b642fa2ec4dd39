/** The whole daemon as a process of its own on a real Redis: CPU of its ticks, how they keep up, its memory over the run. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adopt } from '../dist/actuate/adopt.js';
import { policyHash, policyJson } from '../dist/policy/hash.js';
import { limiterName, policyOf } from './daemon-load.mjs';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
/** Linux counts CPU in hundredths of a second. */
const TICKS_A_SECOND = 100;

/** Adopts a policy for each limiter, as files would be: the daemon finds them in the registry. */
export async function adoptAll(redis, limiters) {
  for (let from = 0; from < limiters; from += 50) {
    const part = Array.from({ length: Math.min(50, limiters - from) }, (_each, i) => from + i);
    await Promise.all(
      part.map(async (i) => {
        const policy = policyOf(limiterName(i));
        const json = policyJson(policy);
        const loaded = { file: 'bench', policy, json, hash: policyHash(policy) };
        const actor = { kind: 'person', name: 'bench' };
        const nowMs = Date.now();
        const outcome = await adopt(redis, loaded, { actor, leaseMs: 60_000, nowMs });
        if (outcome.status !== 'created') throw new Error(`bench: ${JSON.stringify(outcome)}`);
      }),
    );
  }
}

export async function startDaemon(port) {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-bench-daemon-'));
  writeFileSync(
    join(dir, 'own.mjs'),
    `export default { limiter: { name: 'own', rate: 10, capacity: 10 } };\n`,
  );
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [MAIN, 'run', join(dir, 'own.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...{ PATH, HOME, FLYBALL_DATA_DIR: dir, FLYBALL_HTTP_PORT: '0' },
      FLYBALL_REDIS_URL: `redis://127.0.0.1:${port}`,
    },
  });
  const ended = new Promise((ok) => child.once('exit', ok));
  let leads = 0;
  let http = '';
  let rest = '';
  const failures = [];
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const text of lines) {
      const line = JSON.parse(text);
      if (line.event === 'lease_taken') leads += 1;
      else if (line.event === 'http') http = line.address;
      else if (line.level === 'error' || line.level === 'warn') failures.push(line.msg);
    }
  });
  return {
    get leads() {
      return leads;
    },
    failures,
    /** Address of its pages; empty until it listens. */
    get http() {
      return http;
    },
    cpuSeconds() {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
      return (Number(stat[11]) + Number(stat[12])) / TICKS_A_SECOND;
    },
    rssMb() {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024;
    },
    /** Sums over all limiters of the counters of that name. */
    async counters(...names) {
      const text = await (await fetch(`${http}/metrics`)).text();
      const sums = Object.fromEntries(names.map((name) => [name, 0]));
      for (const line of text.split('\n')) {
        const name = /^[a-zA-Z_:]+/.exec(line)?.[0];
        if (name in sums) sums[name] += Number(line.slice(line.lastIndexOf(' ')));
      }
      return sums;
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
