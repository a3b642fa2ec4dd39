/** What a decision costs as keys grow from 10³ to 10⁶, and as limits of one request grow from one to four. */
import { takeAll } from '../dist/index.js';
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

const ROUNDS = 5;
const MEASURE_MS = 300;
const IN_FLIGHT = 512;
const COUNTS = [1e3, 1e4, 1e5, 1e6];
const SUBJECT = { subject: 'u:{id}', rate: 1e5, capacity: 1e6 };

export async function keysPart(server) {
  const all = [];
  for (const count of COUNTS) {
    const limiter = await managedLimiter(server.connect(), `keys${count}`, {
      perSubject: SUBJECT,
      topSubjects: false,
    });
    await visitAll(limiter, count);
    const ask = async (subject) => (await limiter.take(subject)).allowed;
    all.push({ name: `${count} keys`, ask, subjects: zipfSubjects(count), limiter });
  }
  const runs = await interleaved(all, ROUNDS, ({ ask, subjects }) =>
    withServerCpu(server, () => closedLoop(ask, { subjects, inFlight: IN_FLIGHT, ms: MEASURE_MS })),
  );
  for (const { limiter } of all) await limiter.close();
  return { tables: [tableOf('Keys', all, runs, all[0].name)], targets: [] };
}

/** Each key is there, as in a service that has run for a while. */
async function visitAll(limiter, count) {
  for (let i = 0; i < count; i += 2_000) {
    const takes = [];
    for (let k = i; k < Math.min(count, i + 2_000); k++) takes.push(limiter.take(subjectName(k)));
    await Promise.all(takes);
  }
}

export async function limitsPart(server) {
  const redis = server.connect();
  const subjects = zipfSubjects(10_000);
  const total = await managedLimiter(redis, 'total', {});
  const both = await managedLimiter(redis, 'both', { perSubject: SUBJECT });
  const members = [];
  for (const name of ['first', 'second', 'third', 'fourth']) {
    members.push(await managedLimiter(redis, name, { group: 'g' }));
  }
  const [, , , fourth] = members;
  const three = takeAll(members.slice(0, 3));
  const four = takeAll(members);
  const allowed = async (decision) => (await decision).allowed;
  const all = [
    { name: '1 limit: take, the total', ask: () => allowed(total.take()) },
    { name: '2 limits: take, total and subject', ask: (subject) => allowed(both.take(subject)) },
    { name: '3 limits: takeAll of three', ask: () => allowed(three.take()) },
    { name: '4 limits: takeAll of four', ask: () => allowed(four.take()) },
    {
      name: '4 limits: four takes, each by itself',
      ask: async () => {
        const decisions = await Promise.all(members.map((member) => member.take()));
        return decisions.every((decision) => decision.allowed);
      },
    },
  ];
  const measure = ({ ask }) =>
    withServerCpu(server, () => closedLoop(ask, { subjects, inFlight: IN_FLIGHT, ms: MEASURE_MS }));
  for (const each of all) await measure(each);
  const runs = await interleaved(all, ROUNDS, measure);
  for (const limiter of [total, both, ...members.slice(0, 3), fourth]) await limiter.close();
  return { tables: [tableOf('Limits of one request', all, runs, all[0].name)], targets: [] };
}

function tableOf(title, all, runs, first) {
  return {
    title: `${title}, ${IN_FLIGHT} in flight, ${ROUNDS} rounds`,
    columns: ['', '× the first', 'requests/s', 'client µs', 'Redis µs', 'admitted'],
    rows: all.map(({ name }) => [
      name,
      ratioOf(runs, name, first),
      medianOf(runs, name, 'perSecond'),
      medianOf(runs, name, 'clientCpuUs'),
      medianOf(runs, name, 'serverCpuUs'),
      medianOf(runs, name, 'admitted'),
    ]),
  };
}
