/** A real Redis Cluster for tests: masters with or without replicas, slots that can be moved, ended by their pids. */

import { Cluster, type ClusterOptions, type Redis } from 'ioredis';
import { freePort, startRedis, type TestRedis } from './redis-server.js';
import { until } from './sdk-params.js';

const SLOTS = 16_384;
/** A master that is silent for this long is failed over. */
const NODE_TIMEOUT_MS = 1_000;

export interface ClusterNode {
  readonly server: TestRedis;
  readonly id: string;
  readonly admin: Redis;
}

export interface TestCluster {
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  readonly url: string;
  client(options?: ClusterOptions): Cluster;
  /** The master that serves the slot of this key now, as the first node that answers sees it. */
  ownerOf(key: string): Promise<ClusterNode>;
  /** Moves the slot of `key`, its keys one by one, with `between` called after each step. */
  moveSlot(key: string, to: ClusterNode, between?: () => Promise<void>): Promise<number>;
  stop(): Promise<void>;
}

/** One node that serves all slots: what is wrong of slots is wrong on it, too. */
export async function startLoneNode(): Promise<{ server: TestRedis; cluster: Cluster }> {
  const server = await startRedis([
    ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
  ]);
  const node = server.client({ enableReadyCheck: false });
  await node.call('CLUSTER', 'ADDSLOTSRANGE', 0, SLOTS - 1);
  await until('the cluster is up', async () =>
    String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
  return { server, cluster: new Cluster([{ host: '127.0.0.1', port: server.port }]) };
}

export async function startCluster(
  options: { masters?: number; replicas?: number } = {},
): Promise<TestCluster> {
  const { masters: masterCount = 3, replicas: replicaCount = 0 } = options;
  const nodes = await Promise.all(
    Array.from(
      { length: masterCount + replicaCount },
      async (): Promise<ClusterNode & { busPort: number }> => {
        const busPort = await freePort();
        const server = await startRedis([
          '--cluster-enabled',
          'yes',
          '--cluster-announce-ip',
          '127.0.0.1',
          '--cluster-port',
          String(busPort),
          '--cluster-node-timeout',
          String(NODE_TIMEOUT_MS),
          '--cluster-require-full-coverage',
          'no',
          '--cluster-replica-validity-factor',
          '0',
          '--repl-diskless-sync-delay',
          '0',
        ]);
        const admin = server.client({ enableReadyCheck: false, maxRetriesPerRequest: null });
        return { server, admin, busPort, id: String(await admin.call('CLUSTER', 'MYID')) };
      },
    ),
  );
  const masters = nodes.slice(0, masterCount);
  const replicas = nodes.slice(masterCount);
  const per = SLOTS / masterCount;
  await Promise.all(
    nodes.map(async ({ admin }, i) => {
      await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      if (i < masterCount) {
        const [from, to] = [Math.ceil(i * per), Math.ceil((i + 1) * per) - 1];
        await admin.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
      }
      const { server, busPort } = nodes[0]!;
      if (i > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', server.port, busPort);
    }),
  );
  const info = async ({ admin }: ClusterNode) => String(await admin.call('CLUSTER', 'INFO'));
  const whole = (text: string) =>
    text.includes('cluster_state:ok') && text.includes(`cluster_known_nodes:${nodes.length}`);
  await until('the nodes know each other', async () =>
    (await Promise.all(nodes.map(info))).every(whole),
  );
  await Promise.all(
    replicas.map(({ admin }, i) =>
      admin.call('CLUSTER', 'REPLICATE', masters[i % masterCount]!.id),
    ),
  );
  await until('replicas follow', async () =>
    (await Promise.all(replicas.map(({ admin }) => admin.info('replication')))).every((text) =>
      text.includes('master_link_status:up'),
    ),
  );
  const slotOf = async (key: string) =>
    Number(await Promise.any(nodes.map(({ admin }) => admin.call('CLUSTER', 'KEYSLOT', key))));

  async function ownerOf(key: string): Promise<ClusterNode> {
    const slot = await slotOf(key);
    // A node that was killed answers nothing; the others do.
    const asked = await Promise.any(nodes.map(({ admin }) => admin.call('CLUSTER', 'SLOTS')));
    const [, , [, , id]] = (asked as [number, number, [string, number, string]][]).find(
      ([from, to]) => from <= slot && slot <= to,
    )!;
    return nodes.find((node) => node.id === id)!;
  }

  const clients = new Set<Cluster>();
  return {
    masters,
    replicas,
    url: `redis+cluster://${masters.map(({ server }) => `127.0.0.1:${server.port}`).join(',')}`,
    client(clusterOptions = {}) {
      const client = new Cluster(
        masters.map(({ server }) => ({ host: '127.0.0.1', port: server.port })),
        clusterOptions,
      );
      client.on('error', () => {});
      clients.add(client);
      return client;
    },
    ownerOf,
    async moveSlot(key, to, between = async () => {}) {
      const slot = await slotOf(key);
      const from = await ownerOf(key);
      await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
      await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
      await between();
      let moved = 0;
      for (;;) {
        const keys = (await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
        if (keys.length === 0) break;
        await from.admin.call('MIGRATE', '127.0.0.1', to.server.port, '', 0, 5000, 'KEYS', ...keys);
        moved += keys.length;
        await between();
      }
      for (const { admin } of [to, from])
        await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
      return moved;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(nodes.map(({ server }) => server.stop()));
    },
  };
}
