/** The bench `enforce`: decisions a second against peers, a lone decision, CPU, memory, and Fastify. */
import { fastifyPart } from './enforce-fastify.mjs';
import { lonePart, memoryPart } from './enforce-lone.mjs';
import { throughputPart } from './enforce-throughput.mjs';
import { installPeers } from './peers.mjs';
import { startRedis } from './redis.mjs';

const PARTS = {
  throughput: throughputPart,
  lone: lonePart,
  memory: memoryPart,
  fastify: fastifyPart,
};

/** A whole run has all parts; work on one of them may ask for that alone. */
export async function enforceBench(parts = Object.keys(PARTS)) {
  await installPeers();
  const result = { tables: [], targets: [], notes: [] };
  for (const part of parts) {
    process.stderr.write(`bench: ${part} …\n`);
    const server = await startRedis();
    try {
      const { tables, targets, notes = [] } = await PARTS[part](server);
      result.tables.push(...tables);
      result.targets.push(...targets);
      result.notes.push(...notes);
    } finally {
      await server.stop();
    }
  }
  return result;
}
