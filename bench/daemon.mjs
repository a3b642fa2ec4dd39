/** The bench `daemon`: a tick of 1,000 limiters, its memory, and what reporting costs services and Redis. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { doneCosts, flushCost } from './daemon-done.mjs';
import { startLoad } from './daemon-load.mjs';
import { adoptAll, startDaemon } from './daemon-process.mjs';
import { startRedis } from './redis.mjs';
import { median, target } from './report.mjs';

const LIMITERS = 1000;
const SIGNALS = 4;
const TICKS = 15;
const WARM_S = 20;
const RUN_S = { quick: 20, usual: 60, full: 600 };
const PER_SECOND = [100, 1000];
const SENSE = fileURLToPath(new URL('daemon-sense.mjs', import.meta.url));

const PARTS = { sense: sensePart, whole: wholePart, done: donePart };

export async function daemonBench(parts = Object.keys(PARTS), flags = {}) {
  const result = { tables: [], targets: [], notes: [] };
  for (const part of parts) {
    process.stderr.write(`bench: ${part} …\n`);
    const server = await startRedis();
    try {
      const { tables, targets, notes = [] } = await PARTS[part](server, flags);
      result.tables.push(...tables);
      result.targets.push(...targets);
      result.notes.push(...notes);
    } finally {
      await server.stop();
    }
  }
  return result;
}

/** Sense and estimate alone, in a process of their own: the same code that the daemon runs. */
async function sensePart(server) {
  const load = startLoad(server.port, LIMITERS);
  try {
    const args = [SENSE, server.port, LIMITERS, TICKS].map(String);
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { cpuMs, wallMs, fresh } = JSON.parse(stdout);
    const cpu = median(cpuMs);
    const isFed = fresh >= 0.99 * LIMITERS * SIGNALS;
    return {
      tables: [
        {
          title: `Sense and estimate, ${LIMITERS} limiters × ${SIGNALS} signals, ${load.fields} fields a second and limiter, ${TICKS} ticks of 1 s`,
          columns: ['', 'median', 'worst tick'],
          rows: [
            ['CPU a tick, ms', cpu, Math.max(...cpuMs)],
            ['from the first read to the last estimate, ms', median(wallMs), Math.max(...wallMs)],
            ['signals fresh at the end', fresh, ''],
          ],
        },
      ],
      targets: [
        // Limiters that have nothing to read cost next to nothing.
        target(
          `sense + estimate of ${LIMITERS} limiters, ms of one core a tick`,
          isFed ? cpu : Number.NaN,
          '<=',
          250,
        ),
        target('signals that were fresh', fresh / (LIMITERS * SIGNALS), '>=', 0.99),
      ],
    };
  } finally {
    load.stop();
  }
}

/** The whole daemon as it ships: it leads every limiter. */
async function wholePart(server, { quick = false, full = false }) {
  const seconds = full ? RUN_S.full : quick ? RUN_S.quick : RUN_S.usual;
  await adoptAll(server.control, LIMITERS);
  const load = startLoad(server.port, LIMITERS);
  const daemon = await startDaemon(server.port);
  try {
    await until(
      () => daemon.leads > LIMITERS,
      60_000,
      () => `${daemon.leads} limiters are led`,
    );
    await pause(WARM_S * 1000);
    const names = [
      'flyball_daemon_tick_duration_seconds_count',
      'flyball_daemon_tick_overruns_total',
    ];
    const before = await daemon.counters(...names);
    // What the page of metrics cost is over.
    await pause(2000);
    const samples = [];
    let cpu = daemon.cpuSeconds();
    let redis = await server.cpuSeconds();
    const cpuMs = [];
    const redisMs = [];
    for (let s = 0; s < seconds; s += 5) {
      await pause(5000);
      samples.push(daemon.rssMb());
      const now = { cpu: daemon.cpuSeconds(), redis: await server.cpuSeconds() };
      cpuMs.push((now.cpu - cpu) * 200);
      redisMs.push((now.redis - redis) * 200);
      ({ cpu, redis } = now);
    }
    const after = await daemon.counters(...names);
    const [ticks, overruns] = names.map((name) => after[name] - before[name]);
    const third = Math.max(1, Math.floor(samples.length / 3));
    const growth = median(samples.slice(-third)) / median(samples.slice(0, third));
    return {
      tables: [
        {
          title: `The whole daemon, leading ${LIMITERS} limiters, ${seconds} s`,
          columns: ['', 'median', 'worst 5 s'],
          rows: [
            ['CPU of the daemon a second, ms', median(cpuMs), Math.max(...cpuMs)],
            ['CPU of Redis a second, load included, ms', median(redisMs), Math.max(...redisMs)],
            ['resident memory, MB', median(samples), Math.max(...samples)],
            ['turns', ticks, ''],
            ['turns left out, the one before still ran', overruns, ''],
          ],
        },
      ],
      targets: [
        target('memory: last third of the run ÷ first third', growth, '<=', 1.05),
        target('turns left out ÷ turns', overruns / ticks, '<=', 0.01),
      ],
      notes: daemon.failures.slice(0, 3).map((msg) => `The daemon said: ${msg}`),
    };
  } finally {
    load.stop();
    await daemon.stop();
  }
}

async function donePart(server) {
  const costs = await doneCosts(server, PER_SECOND);
  const flush = await flushCost(server);
  return {
    tables: [
      {
        title: '`done()` in a service, µs of CPU each',
        columns: [
          'requests a second in one process',
          'the call',
          'its part of the flush',
          'together',
        ],
        rows: costs.map(({ requests, call, flush, whole }) => [
          String(requests),
          call,
          flush,
          whole,
        ]),
      },
      {
        title: 'A flush, 100 processes of one limiter, 100 requests each a second',
        columns: ['', 'median'],
        rows: [
          ['fields', flush.fields],
          ['bytes to Redis', flush.bytes],
          ['CPU of Redis, µs', flush.redisUs],
          ['CPU of Redis for 100 processes a second, ms', flush.redisUs / 10],
        ],
      },
    ],
    targets: [
      ...costs.map(({ requests, whole }) =>
        target(`done() with its flush at ${requests} a second, µs`, whole, '<=', 2),
      ),
    ],
  };
}

const pause = (ms) => new Promise((ok) => setTimeout(ok, ms));

async function until(done, ms, what) {
  const giveUpAt = Date.now() + ms;
  while (!done()) {
    if (Date.now() > giveUpAt) throw new Error(`bench: after ${ms} ms ${what()}`);
    await pause(100);
  }
}
