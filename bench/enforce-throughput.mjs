/** Decisions a second, client CPU and Redis CPU of a decision: Flyball and its peers, many in flight. */
import { contestants, FLYBALL_CACHED, WORKLOADS } from './contestants.mjs';
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

const IN_FLIGHT = [64, 512];
const ROUNDS = 7;
const MEASURE_MS = 250;
/** Memory of denials lasts 1 s here: a second of load pays for each subject's once, as a long run would. */
const MEASURE_CACHING_MS = 1_000;
const SUBJECTS = 10_000;
const RLF = 'rate-limiter-flexible';
const FLOOR = 'ioredis EVALSHA return 1';

export async function throughputPart(server) {
  const subjects = zipfSubjects(SUBJECTS);
  const tables = [];
  const targets = [];
  for (const workload of Object.keys(WORKLOADS)) {
    const all = [...(await contestants(server, workload)), await floor(server)];
    for (const each of all) await warm(each, subjects);
    for (const inFlight of IN_FLIGHT) {
      const runs = await interleaved(all, ROUNDS, (each) =>
        measure(server, each, subjects, inFlight),
      );
      tables.push(tableOf(workload, inFlight, all, runs));
      targets.push(...targetsOf(workload, inFlight, all, runs));
    }
    for (const each of all) await each.close?.();
  }
  return { tables, targets };
}

/** One per call, as an application writes it: the floor of a decision by ioredis. */
async function floor(server) {
  const client = server.connect();
  const sha = await client.script('LOAD', 'return 1');
  return { name: FLOOR, kind: 'floor', ask: async () => (await client.evalsha(sha, 0)) === 1 };
}

/** Code is compiled, scripts are loaded, and each subject has been seen once. */
async function warm({ ask }, subjects) {
  const names = Array.from({ length: SUBJECTS }, (_each, i) => subjectName(i));
  await closedLoop(walk(ask, names), { subjects: names, inFlight: 64, ms: 400 });
  for (let i = 0; i < names.length; i += 500) {
    await Promise.all(names.slice(i, i + 500).map((name) => ask(name)));
  }
  await closedLoop(ask, { subjects, inFlight: 512, ms: 300 });
}

const walk = (ask) => (subject) => ask(subject);

async function measure(server, each, subjects, inFlight) {
  const ms = each.kind === 'caching' ? MEASURE_CACHING_MS : MEASURE_MS;
  const from = each.next ?? 0;
  const run = await withServerCpu(server, () =>
    closedLoop(each.ask, { subjects, inFlight, ms, from }),
  );
  each.next = run.next;
  return run;
}

const best = (runs, names, field, better) =>
  names.reduce((x, y) => (better(ratioOf(runs, y, x, field), 1) ? y : x));
const more = (a, b) => a > b;
const less = (a, b) => a < b;

function tableOf(workload, inFlight, all, runs) {
  const of = (name, field) => medianOf(runs, name, field);
  return {
    title: `${workload}-heavy, ${inFlight} in flight, ${SUBJECTS} Zipf keys, ${ROUNDS} rounds`,
    columns: ['', '× rlf', 'decisions/s', 'client µs', 'Redis µs', 'admitted', 'failed'],
    rows: all.map(({ name }) => [
      name,
      ratioOf(runs, name, RLF),
      of(name, 'perSecond'),
      of(name, 'clientCpuUs'),
      of(name, 'serverCpuUs'),
      of(name, 'admitted'),
      String(runs.get(name).reduce((sum, run) => sum + run.failed, 0)),
    ]),
  };
}

function targetsOf(workload, inFlight, all, runs) {
  const where = `${workload}, ${inFlight} in flight`;
  const peersOf = (wanted) =>
    all
      .filter(({ name, kind }) => kind === wanted && !name.startsWith('flyball'))
      .map(({ name }) => name);
  const peers = peersOf('exact');
  const against = (peer, field = 'perSecond') => ratioOf(runs, 'flyball', peer, field);
  const targets = [];
  if (workload === 'allowed') {
    const fastest = best(runs, peers, 'perSecond', more);
    targets.push(
      target(`${where}: decisions/s ÷ best exact peer (${fastest})`, against(fastest), '>=', 2),
      target(`${where}: decisions/s ÷ ${FLOOR}`, against(FLOOR), '>=', 1.3),
    );
  } else {
    const caching = best(runs, peersOf('caching'), 'perSecond', more);
    targets.push(
      target(`${where}: decisions/s ÷ ${RLF}`, against(RLF), '>=', 3),
      target(
        `${where}: ${FLYBALL_CACHED} ÷ best caching peer (${caching})`,
        ratioOf(runs, FLYBALL_CACHED, caching),
        '>=',
        2,
      ),
    );
  }
  if (inFlight === 512) {
    const cheapest = best(runs, peers, 'serverCpuUs', less);
    targets.push(
      target(`${where}: client CPU ÷ ${RLF}`, against(RLF, 'clientCpuUs'), '<=', 0.3),
      target(
        `${where}: Redis CPU ÷ cheapest peer (${cheapest})`,
        against(cheapest, 'serverCpuUs'),
        '<=',
        0.75,
      ),
    );
  }
  return targets;
}
