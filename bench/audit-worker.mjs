/** One step of the bench `audit`, in a process of its own: fills a log, exports it, proves it; tells time and peak memory. */
import { Redis } from 'ioredis';
import { verifyAudit } from '../dist/actuate/audit.js';
import { sealEntry } from '../dist/actuate/entry.js';
import { prepareFolder } from '../dist/audit/export-folder.js';
import { createExporter } from '../dist/audit/exporter.js';
import { createFileSink } from '../dist/audit/file-sink.js';
import { NO_HEADS } from '../dist/audit/heads.js';
import { verifyFolder } from '../dist/audit/verify-folder.js';
import { createLog } from '../dist/log.js';
import { GENESIS_HASH } from '../dist/redis/calls.js';
import { limiterKeys } from '../dist/redis/keys.js';

const [what, port, folder, count] = process.argv.slice(2);
const entries = Number(count);
const redis = new Redis({ port: Number(port) });

const STEPS = { fill, nights: fillNights, export: exportAll, verify, 'verify-redis': verifyRedis };

let peak = 0;
const look = () => {
  peak = Math.max(peak, process.memoryUsage.rss());
};
const before = process.memoryUsage.rss();
const timer = setInterval(look, 5);
const start = performance.now();
await STEPS[what]();
look();
clearInterval(timer);
const grownMb = Math.max(0, (peak - before) / 1_048_576);
process.send({ what, ms: performance.now() - start, entries, grownMb });
redis.disconnect();

/** A log as a busy law leaves it: half of an entry are the inputs of its decision. */
async function fill() {
  for (const [name, length] of [
    ['bench', entries],
    ['small', entries / 10],
  ]) {
    const key = limiterKeys({ name }).audit;
    let prev = GENESIS_HASH;
    for (let from = 0; from < length; from += 1000) {
      const pipeline = redis.pipeline();
      for (let i = from + 1; i <= from + 1000; i++) {
        const sealed = sealEntry(prev, bodyOf(name, i));
        prev = sealed.hash;
        const named = ['kind', 'change', 'epoch', '1', 'revision', String(i)];
        pipeline.xadd(
          key,
          '*',
          ...named,
          'hash',
          sealed.hash,
          'prev',
          sealed.prev,
          'body',
          sealed.body,
        );
      }
      await pipeline.exec();
    }
  }
}

function bodyOf(limiter, revision) {
  const values = {
    mode: 'auto',
    state: 'closed',
    rate: revision % 400,
    capacity: 50,
    inFlightMax: 24,
  };
  return {
    ...{
      v: 1,
      kind: 'change',
      limiter,
      epoch: 1,
      revision,
      atMs: 1_700_000_000_000 + revision * 1000,
    },
    ...{
      actor: { kind: 'autopilot', name: 'bench' },
      reason: 'law_cut',
      policyHash: 'a'.repeat(64),
    },
    sentence: `p95 is ${revision} ms, above 250 ms: rate ${revision} → ${revision - 1}/s.`,
    before: revision === 1 ? null : values,
    after: values,
    terms: Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`term${i}`, revision / (i + 3)]),
    ),
  };
}

/**
 * A log of nights: 41 changes a second apart make an episode, quarter of an hour lies between two of them, and an entry
 * carries the inputs of a law with four signals, as large as real ones. The newest was an hour ago.
 */
async function fillNights() {
  const key = limiterKeys({ name: 'nights' }).audit;
  const nights = Math.ceil(entries / 41);
  const firstMs = Date.now() - 3_600_000 - nights * 900_000;
  const inputs = { sample: inputsOf(70), stateBefore: inputsOf(120) };
  let prev = GENESIS_HASH;
  for (let from = 0; from < entries; from += 1000) {
    const pipeline = redis.pipeline();
    for (let i = from + 1; i <= Math.min(entries, from + 1000); i++) {
      const atMs = firstMs + Math.floor(i / 41) * 900_000 + (i % 41) * 1000;
      const body = { ...bodyOf('nights', i), atMs, law: 'adaptive@4', ...inputs };
      const sealed = sealEntry(prev, body);
      prev = sealed.hash;
      const named = ['kind', 'change', 'epoch', '1', 'revision', String(i), 'hash', prev];
      pipeline.xadd(key, `${atMs}-0`, ...named, 'prev', sealed.prev, 'body', sealed.body);
    }
    await pipeline.exec();
  }
}

/** Named in their order, as they are written: sorting them would take most of the time. */
function inputsOf(count) {
  const name = (i) => `part${String(i).padStart(3, '0')}`;
  const value = (i) => Number((Math.SQRT2 / (i + 1)).toFixed(9));
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [name(i), value(i)]));
}

function limiterHere() {
  return folder.endsWith('small') ? 'small' : 'bench';
}

async function exportAll() {
  const { id } = await prepareFolder(folder);
  const log = createLog({ level: 'silent' });
  const nowMs = () => Date.now();
  const given = { dir: folder, id, prefix: 'flyball', maxBytes: 1 << 30, signer: null, nowMs };
  const sink = createFileSink({
    ...given,
    redis,
    owner: 'bench',
    leaseMs: 15_000,
    onCut: () => {},
  });
  const nothing = () => {};
  const exporter = createExporter({
    ...{ redis, prefix: 'flyball', sink, nowMs, log },
    limiters: async () => [{ name: limiterHere() }],
    seen: { exported: nothing, failed: nothing, lag: nothing, writes: nothing },
  });
  await exporter.minute();
  if (exporter.fault !== null) throw new Error(exporter.fault);
  await exporter.close();
}

async function verify() {
  const { limiters } = await verifyFolder(folder, { anchors: NO_HEADS, verifier: null });
  assertWhole(limiters[0]);
}

async function verifyRedis() {
  assertWhole(await verifyAudit(redis, { name: 'bench' }));
}

function assertWhole(report) {
  if (report?.verdict === 'broken' || report?.entries !== entries) {
    throw new Error(`not whole: ${JSON.stringify(report)}`);
  }
}
