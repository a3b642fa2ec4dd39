/** The bench `audit`: the first page of a long log, and memory while a log is exported and proven. */

import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readEntries } from '../dist/actuate/audit.js';
import { limiterKeys } from '../dist/redis/keys.js';
import { readEpisodes } from '../dist/view/episodes.js';
import { startRedis } from './redis.mjs';
import { median, target } from './report.mjs';

const ENTRIES = 100_000;
const PAGES = 15;
const WORKER = fileURLToPath(new URL('./audit-worker.mjs', import.meta.url));

export async function auditBench() {
  const server = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), 'flyball-bench-audit-'));
  const redis = server.connect();
  try {
    await inWorker('fill', server.port, folder, ENTRIES);
    const page = await pageTimes(entriesPage);
    const unbroken = await pageTimes(() => episodesPage('bench', 1));
    await inWorker('nights', server.port, folder, ENTRIES);
    const nights = await pageTimes(() => episodesPage('nights', 20));
    await redis.del(limiterKeys({ name: 'nights' }).audit);
    const small = await inWorker('export', server.port, join(folder, 'small'), ENTRIES / 10);
    const large = await inWorker('export', server.port, join(folder, 'large'), ENTRIES);
    const smallProof = await inWorker('verify', server.port, join(folder, 'small'), ENTRIES / 10);
    const proof = await inWorker('verify', server.port, join(folder, 'large'), ENTRIES);
    const inRedis = await inWorker('verify-redis', server.port, folder, ENTRIES);
    return {
      tables: [
        {
          title: `A log of ${ENTRIES} entries, ${megabytes(folder)} MB as files`,
          columns: ['', 'ms', 'entries', 'peak memory over start, MB'],
          rows: [
            ['first page of 20 entries', page, 20, '–'],
            ['first page of 20 episodes of 41 changes', nights, 820, '–'],
            ['first page of episodes, of one that never ends', unbroken, 2000, '–'],
            ...[small, large, smallProof, proof, inRedis].map(({ what, ms, entries, grownMb }) => [
              what,
              ms,
              entries,
              grownMb,
            ]),
          ],
        },
      ],
      targets: [
        target(`first page of ${ENTRIES} entries, ms`, page, '<=', 200),
        target(`first page of episodes over ${ENTRIES} entries, ms`, nights, '<=', 200),
        target('the same of one episode that never ends, ms', unbroken, '<=', 200),
        target(
          'export: memory of ten times the entries, more MB',
          large.grownMb - small.grownMb,
          '<=',
          64,
        ),
        target(
          'verify: memory of ten times the entries, more MB',
          proof.grownMb - smallProof.grownMb,
          '<=',
          64,
        ),
        target('verify of Redis: peak over start, MB', inRedis.grownMb, '<=', 128),
      ],
    };
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }

  async function entriesPage() {
    const { entries } = await readEntries(redis, { name: 'bench' }, { limit: 20 });
    if (entries.length !== 20) throw new Error('the page is not whole');
  }

  /** As the CLI and the API serve it. */
  async function episodesPage(name, count) {
    const { episodes } = await readEpisodes(redis, [{ name }], { limit: 20 });
    const { length } = episodes;
    if (length !== count) throw new Error(`${length} episodes, and not ${count}`);
  }
}

async function pageTimes(read) {
  const times = [];
  for (let i = 0; i < PAGES; i++) {
    const start = performance.now();
    await read();
    times.push(performance.now() - start);
  }
  return median(times);
}

/** A process of its own for each measurement: its memory is nobody else's. */
function inWorker(what, port, folder, entries) {
  return new Promise((ok, no) => {
    const child = fork(WORKER, [what, String(port), folder, String(entries)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    let result;
    child.on('message', (message) => {
      result = message;
    });
    child.on('exit', (code) =>
      code === 0 ? ok(result) : no(new Error(`${what} ended with ${code}`)),
    );
  });
}

function megabytes(folder) {
  const file = join(folder, 'large', 'audit-000001.jsonl');
  return Math.round(statSync(file).size / 1_048_576);
}
