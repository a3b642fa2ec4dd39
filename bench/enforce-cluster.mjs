/** Decisions on a real Cluster of three masters: one limiter on each, against rate-limiter-flexible on the same. */
import { Cluster } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { managedLimiter } from './limiter.mjs';
import { closedLoop, interleaved, medianOf, ratioOf, zipfSubjects } from './load.mjs';
import { freePort, startRedis } from './redis.mjs';

const ROUNDS = 5;
const MEASURE_MS = 300;
const SLOTS = 16_384;
const MASTERS = 3;
/** One on each master: their slots lie in different thirds. */
const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta'];
const RLF = 'rate-limiter-flexible';

export async function clusterPart(server) {
  const nodes = await startMasters();
  const clients = [];
  const connect = () => {
    const client = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    client.on('error', () => {});
    clients.push(client);
    return client;
  };
  try {
    const names = await oneForEach(nodes);
    const limiters = [];
    for (const name of names) limiters.push(await limiterOn(connect(), name));
    const single = await limiterOn(server.connect(), 'single');
    const flexible = new RateLimiterRedis({ storeClient: connect(), points: 1e6, duration: 1000 });
    const all = [
      { name: `flyball, ${MASTERS} limiters, each on a master of its own`, ask: turns(limiters) },
      { name: 'flyball, one limiter, on one master', ask: turns(limiters.slice(0, 1)) },
      { name: 'flyball, one limiter, without a Cluster', ask: turns([single]) },
      { name: RLF, ask: (subject) => flexible.consume(subject).then(() => true) },
    ];
    const tables = [];
    const subjects = zipfSubjects(10_000);
    for (const inFlight of [64, 512]) {
      const measure = ({ ask }) => closedLoop(ask, { subjects, inFlight, ms: MEASURE_MS });
      for (const each of all) await measure(each);
      const runs = await interleaved(all, ROUNDS, measure);
      tables.push({
        title: `A Cluster of ${MASTERS} masters, ${inFlight} in flight, 10000 Zipf keys, ${ROUNDS} rounds`,
        columns: ['', '× rlf', 'decisions/s', 'client µs', 'admitted', 'failed'],
        rows: all.map(({ name }) => [
          name,
          ratioOf(runs, name, RLF),
          medianOf(runs, name, 'perSecond'),
          medianOf(runs, name, 'clientCpuUs'),
          medianOf(runs, name, 'admitted'),
          String(runs.get(name).reduce((sum, run) => sum + run.failed, 0)),
        ]),
      });
    }
    for (const limiter of [...limiters, single]) await limiter.close();
    return { tables, targets: [] };
  } finally {
    for (const client of clients) client.disconnect();
    for (const node of nodes) await node.stop();
  }
}

function limiterOn(redis, name) {
  return managedLimiter(redis, name, {
    perSubject: { subject: 'u:{id}', rate: 1e5, capacity: 1e6 },
    denyCache: false,
  });
}

function turns(limiters) {
  let next = 0;
  return async (subject) => {
    next = (next + 1) % limiters.length;
    return (await limiters[next].take(subject)).allowed;
  };
}

async function startMasters() {
  const nodes = [];
  for (let i = 0; i < MASTERS; i++) {
    // Its default would be the port plus 10,000, which may be none.
    const busPort = await freePort();
    const settings = { 'cluster-enabled': 'yes', 'cluster-node-timeout': '5000' };
    nodes.push({ ...(await startRedis({ ...settings, 'cluster-port': busPort })), busPort });
  }
  const [first] = nodes;
  const edge = (i) => Math.ceil((i * SLOTS) / MASTERS);
  for (const [i, { control }] of nodes.entries()) {
    await control.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    await control.call('CLUSTER', 'ADDSLOTSRANGE', edge(i), edge(i + 1) - 1);
    if (i > 0) await control.call('CLUSTER', 'MEET', '127.0.0.1', first.port, first.busPort);
  }
  const giveUpAt = performance.now() + 30_000;
  for (;;) {
    const infos = await Promise.all(nodes.map(({ control }) => control.call('CLUSTER', 'INFO')));
    const whole = `cluster_known_nodes:${MASTERS}`;
    if (infos.every((text) => text.includes('cluster_state:ok') && text.includes(whole))) break;
    if (performance.now() > giveUpAt) throw new Error('bench: the cluster did not come up');
    await new Promise((ok) => setTimeout(ok, 100));
  }
  return nodes;
}

async function oneForEach(nodes) {
  const [{ control }] = nodes;
  const found = new Map();
  for (const name of NAMES) {
    const slot = await control.call('CLUSTER', 'KEYSLOT', `{${name}}`);
    const at = Math.floor((slot * MASTERS) / SLOTS);
    if (!found.has(at)) found.set(at, name);
  }
  if (found.size < MASTERS) throw new Error('bench: no limiter name for one of the masters');
  return [...found.values()];
}
