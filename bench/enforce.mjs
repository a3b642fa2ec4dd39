/** The bench `enforce`: decisions against peers, alone, by blocks, on a Cluster; CPU, memory, keys, limits, Fastify. */
import { installPeers } from './peers.mjs';
import { startRedis } from './redis.mjs';

/** Loaded when they are run: they import the peers, which are installed first. */
const PARTS = {
  throughput: async () => (await import('./enforce-throughput.mjs')).throughputPart,
  lone: async () => (await import('./enforce-lone.mjs')).lonePart,
  memory: async () => (await import('./enforce-lone.mjs')).memoryPart,
  fastify: async () => (await import('./enforce-fastify.mjs')).fastifyPart,
  blocks: async () => (await import('./enforce-blocks.mjs')).blocksPart,
  keys: async () => (await import('./enforce-keys.mjs')).keysPart,
  limits: async () => (await import('./enforce-keys.mjs')).limitsPart,
  cluster: async () => (await import('./enforce-cluster.mjs')).clusterPart,
};

export const ENFORCE_PARTS = Object.keys(PARTS);

/** A whole run has all parts; work on one of them may ask for that alone. */
export async function enforceBench(parts = ENFORCE_PARTS) {
  await installPeers();
  const result = { tables: [], targets: [], notes: [] };
  for (const part of parts) {
    process.stderr.write(`bench: ${part} …\n`);
    const run = await PARTS[part]();
    const server = await startRedis();
    try {
      const { tables, targets, notes = [] } = await run(server);
      result.tables.push(...tables);
      result.targets.push(...targets);
      result.notes.push(...notes);
    } finally {
      await server.stop();
    }
  }
  return result;
}
