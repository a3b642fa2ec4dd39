/** `draw: 'block'`: decisions a second on hot keys, and what a decision taken here costs against one taken in memory. */
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { managedLimiter } from './limiter.mjs';
import {
  closedLoop,
  interleaved,
  medianOf,
  ratioOf,
  subjectName,
  withServerCpu,
  zipfSubjects,
} from './load.mjs';
import { target } from './report.mjs';

const ROUNDS = 7;
const MEASURE_MS = 300;
const HOT_KEYS = 20;
/** As many as the decisions of a bench will ever take. */
const ENDLESS = { rate: 1e6, capacity: 1e9 };
const BY_BLOCKS = 'flyball, draw block';
const LOCAL = 'flyball, draw block, total only';
const RLF = 'rate-limiter-flexible';
const MEMORY = 'RateLimiterMemory';
/** What any asynchronous answer costs: no decision at all. */
const NOTHING = 'a promise that is resolved';
const admits = (consumed) => consumed.then(() => true);

export async function blocksPart(server) {
  const hot = zipfSubjects(HOT_KEYS);
  const limiter = await managedLimiter(server.connect(), 'blocks', {
    total: ENDLESS,
    perSubject: { subject: 'u:{id}', ...ENDLESS },
    draw: 'block',
  });
  const each = await managedLimiter(server.connect(), 'blocks-each', {
    total: ENDLESS,
    perSubject: { subject: 'u:{id}', ...ENDLESS },
  });
  const flexible = new RateLimiterRedis({
    storeClient: server.connect(),
    points: 1e9,
    duration: 1000,
  });
  const all = [
    { name: BY_BLOCKS, ask: async (subject) => (await limiter.take(subject)).allowed },
    { name: 'flyball, draw each', ask: async (subject) => (await each.take(subject)).allowed },
    { name: RLF, ask: (subject) => admits(flexible.consume(subject)) },
  ];
  const tables = [];
  const targets = [];
  for (const inFlight of [64, 512]) {
    const runs = await rounds(all, (ask) =>
      withServerCpu(server, () => closedLoop(ask, { subjects: hot, inFlight, ms: MEASURE_MS })),
    );
    tables.push({
      title: `${HOT_KEYS} hot keys, ${inFlight} in flight, ${ROUNDS} rounds`,
      columns: ['', '× rlf', 'decisions/s', 'client µs', 'Redis µs', 'admitted'],
      rows: all.map(({ name }) => [
        name,
        ratioOf(runs, name, RLF),
        medianOf(runs, name, 'perSecond'),
        medianOf(runs, name, 'clientCpuUs'),
        medianOf(runs, name, 'serverCpuUs'),
        medianOf(runs, name, 'admitted'),
      ]),
    });
    const name = `draw block, ${HOT_KEYS} hot keys, ${inFlight} in flight: decisions/s ÷ ${RLF}`;
    targets.push(target(name, ratioOf(runs, BY_BLOCKS, RLF), '>=', 4));
  }
  const local = await localDecisions(server);
  for (const { stats, close } of [limiter, each]) {
    const { calls, decisions } = stats();
    local.notes.push(`${JSON.stringify(decisions)} in ${calls} calls`);
    await close();
  }
  return {
    ...local,
    tables: [...tables, ...local.tables],
    targets: [...targets, ...local.targets],
  };
}

/** One after another through the async API, so that nothing but the decision is paid for. */
async function localDecisions(server) {
  const subjects = zipfSubjects(10_000);
  const limiter = await managedLimiter(server.connect(), 'local', {
    total: ENDLESS,
    draw: 'block',
    topSubjects: false,
  });
  const memory = new RateLimiterMemory({ points: 1e9, duration: 1000 });
  for (let i = 0; i < 10_000; i++) await memory.consume(subjectName(i));
  const all = [
    { name: LOCAL, ask: (subject) => limiter.take(subject) },
    { name: MEMORY, ask: (subject) => memory.consume(subject) },
    { name: NOTHING, ask: () => Promise.resolve({ allowed: true }) },
  ];
  const runs = await rounds(all, (ask) => oneByOne(ask, subjects));
  const { decisions } = limiter.stats();
  await limiter.close();
  return {
    tables: [
      {
        title: `A decision taken in the process, ${ROUNDS} rounds`,
        columns: ['', 'decisions/s', 'µs'],
        rows: all.map(({ name }) => [
          name,
          medianOf(runs, name, 'perSecond'),
          medianOf(runs, name, 'clientCpuUs'),
        ]),
      },
    ],
    targets: [
      target(`a local decision: decisions/s ÷ ${MEMORY}`, ratioOf(runs, LOCAL, MEMORY), '>=', 3),
    ],
    notes: [`Local decisions: ${JSON.stringify(decisions)}`],
  };
}

/** The leanest loop there is: what it costs itself would make the two alike. */
async function oneByOne(ask, subjects) {
  let decisions = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  while (performance.now() - start < MEASURE_MS) {
    for (let i = 0; i < 256; i++) await ask(subjects[(decisions + i) % subjects.length]);
    decisions += 256;
    await new Promise((ok) => setImmediate(ok));
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (decisions * 1000) / (performance.now() - start),
    clientCpuUs: (user + system) / decisions,
  };
}

async function rounds(all, measure) {
  for (const { ask } of all) await measure(ask);
  return interleaved(all, ROUNDS, ({ ask }) => measure(ask));
}
