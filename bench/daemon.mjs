/** The bench `daemon`: a tick of 1,000 limiters, its memory, and what reporting costs services and Redis. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { doneCosts, flushCost } from './daemon-done.mjs';
import { startFeed } from './daemon-load.mjs';
import { adoptAll, startDaemon } from './daemon-process.mjs';
import { startRedis } from './redis.mjs';
import { median, target } from './report.mjs';

const LIMITERS = 1000;
const SIGNALS = 4;
const TICKS = 15;
/**
 * Windows look back a minute; V8 then lets the heap grow to a multiple of what the next full collections find alive,
 * and those come every 20 to 30 s. From then on memory should stand.
 */
const WARM_S = 130;
/** A crowded machine may take so long until all is led and fresh. */
const PATIENCE_MS = 60_000;
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

/** Sense and estimate alone, in a process of their own: the same code that the daemon runs, in the same loop. */
async function sensePart(server) {
  const load = await startFeed(server.port, LIMITERS);
  try {
    const args = [SENSE, server.port, LIMITERS, TICKS].map(String);
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const seconds = JSON.parse(stdout);
    const of = (name) => seconds.map((second) => second[name]);
    const turns = median(of('turns'));
    // What is left out on a crowded machine must not count as cheap.
    const cpu = seconds.map(({ cpuMs, turns }) => (cpuMs / turns) * LIMITERS);
    const fresh = median(of('fresh'));
    const isFed = fresh >= 0.99 * LIMITERS * SIGNALS;
    return {
      tables: [
        {
          title: `Sense and estimate, ${LIMITERS} limiters × ${SIGNALS} signals, ${load.fields} fields a second and limiter, ${TICKS} ticks of 1 s`,
          columns: ['', 'median', 'worst tick'],
          rows: [
            ['CPU a tick of all, ms', median(cpu), Math.max(...cpu)],
            [
              'a turn, from its read to its estimate, ms',
              median(of('turnMs')),
              Math.max(...of('turnMs')),
            ],
            ['turns a second', turns, Math.min(...of('turns'))],
            ['signals fresh', fresh, Math.min(...of('fresh'))],
          ],
        },
      ],
      targets: [
        // Limiters that have nothing to read cost next to nothing.
        target(
          `sense + estimate of ${LIMITERS} limiters, ms of one core a tick`,
          isFed ? median(cpu) : Number.NaN,
          '<=',
          250,
        ),
        target('signals that were fresh', fresh / (LIMITERS * SIGNALS), '>=', 0.99),
      ],
    };
  } finally {
    await load.stop();
  }
}

/** The whole daemon as it ships: it leads every limiter. */
async function wholePart(server, { quick = false, full = false }) {
  const seconds = full ? RUN_S.full : quick ? RUN_S.quick : RUN_S.usual;
  await adoptAll(server.control, LIMITERS);
  const load = await startFeed(server.port, LIMITERS);
  const daemon = await startDaemon(server.port);
  try {
    await until(
      () => daemon.leads > LIMITERS,
      2 * PATIENCE_MS,
      () => `${daemon.leads} limiters are led`,
    );
    await pause(WARM_S * 1000);
    const names = [
      'flyball_daemon_tick_duration_seconds_count',
      'flyball_daemon_tick_overruns_total',
      'flyball_estimate_signal_fresh',
    ];
    let fresh = 0;
    const freshAtLast = async () => {
      fresh = (await daemon.counters(...names)).flyball_estimate_signal_fresh;
      return fresh >= 0.99 * LIMITERS * SIGNALS;
    };
    await until(freshAtLast, PATIENCE_MS, () => `${fresh} signals are fresh`, 5000).catch(() => {});
    const before = await daemon.counters(...names);
    const startedMs = performance.now();
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
    const freshAtEnd = after.flyball_estimate_signal_fresh;
    const ranS = (performance.now() - startedMs) / 1000;
    const turnUs = (1000 * cpuMs.reduce((sum, ms) => sum + ms, 0)) / cpuMs.length / (ticks / ranS);
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
            ['CPU of the daemon a turn, µs', turnUs, ''],
            ['signals fresh at the end', freshAtEnd, ''],
            ['resident memory, MB', median(samples), Math.max(...samples)],
            ['turns', ticks, ''],
            ['turns left out, the one before still ran', overruns, ''],
          ],
        },
      ],
      targets: [
        target('memory: last third of the run ÷ first third', growth, '<=', 1.05),
        target('turns left out ÷ turns', overruns / ticks, '<=', 0.01),
        target('signals that were fresh', freshAtEnd / (LIMITERS * SIGNALS), '>=', 0.99),
      ],
      notes: daemon.failures.slice(0, 3).map((msg) => `The daemon said: ${msg}`),
    };
  } finally {
    await load.stop();
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
          'a whole flush by itself',
        ],
        rows: costs.map(({ requests, call, flush, whole, aloneUs }) => [
          String(requests),
          call,
          flush,
          whole,
          aloneUs,
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

async function until(done, ms, what, everyMs = 100) {
  const giveUpAt = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > giveUpAt) throw new Error(`bench: after ${ms} ms ${what()}`);
    await pause(everyMs);
  }
}
