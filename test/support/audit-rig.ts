/** Audit logs to export and to prove: a limiter that changes, exporters in this process, folders that can be tampered with. */
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { readParams, write, writeNote } from '../../src/actuate/actuator.js';
import { prepareFolder } from '../../src/audit/export-folder.js';
import { createExporter, type Exporter } from '../../src/audit/exporter.js';
import { createFileSink } from '../../src/audit/file-sink.js';
import { createSigner, createVerifier } from '../../src/audit/signature.js';
import type { Sink } from '../../src/audit/sink.js';
import { verifyFolder } from '../../src/audit/verify-folder.js';
import { type Clock, systemClock } from '../../src/clock.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { seedParams } from './seed-params.js';

export const address = { name: 'checkout' };
export const keys = limiterKeys(address);
const actor = { kind: 'person' as const, name: 'kim' };
const empty = { before: null, after: null, policyHash: '' };

/** A key pair as PEM. */
export function keyPair(): { secret: string; open: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  return { secret, open: publicKey.export({ type: 'spki', format: 'pem' }) as string };
}

/** One revision more; `detail` goes into its entry. */
export async function change(redis: Redis, detail?: Record<string, unknown>): Promise<string> {
  const { params } = await readParams(redis, address);
  const reply = await write(
    redis,
    address,
    {
      ...empty,
      authority: { kind: 'person' },
      expected: params!,
      change: { rate: 10 + (params!.revision % 50) },
      cause: 'person',
      ...{ actor, reason: 'pin', sentence: `Revision ${params!.revision + 1}.` },
      ...(detail === undefined ? {} : { detail }),
    },
    { leaseMs: 0, nowMs: 1_700_000_000_000 + params!.revision },
  );
  if (reply.status !== 'ok') throw new Error(`refused: ${reply.reason}`);
  return reply.streamId;
}

export async function noteOf(redis: Redis, sentence: string): Promise<void> {
  const { params } = await readParams(redis, address);
  const request = { ...empty, expected: params!, actor, reason: 'note', sentence };
  await writeNote(redis, address, request, { nowMs: 1_700_000_000_000 });
}

/** Revisions 1 … `count`, every third followed by a note. */
export async function history(redis: Redis, count = 8): Promise<void> {
  await redis.flushall();
  await seedParams(redis, keys);
  for (let i = 2; i <= count; i++) {
    await change(redis);
    if (i % 3 === 0) await noteOf(redis, `Note ${i}.`);
  }
}

export interface RigOptions {
  owner?: string;
  secret?: string;
  maxBytes?: number;
  nowMs?: () => number;
  /** As `nowMs`, unless only one of them is set. */
  monotonicMs?: () => number;
}

export interface RigExporter extends Exporter {
  sink: Sink;
  seen: { exported: number; failed: number; writes: boolean; cut: number };
}

/** An exporter to a folder, as a daemon makes it; the test says when it works. */
export async function folderExporter(
  redis: Redis,
  dir: string,
  options: RigOptions = {},
): Promise<RigExporter> {
  const { owner = 'd1', secret, maxBytes = 1_000_000, nowMs = Date.now } = options;
  const { monotonicMs = nowMs } = options;
  const { id } = await prepareFolder(dir);
  const seen = { exported: 0, failed: 0, writes: false, cut: 0 };
  const signer = secret === undefined ? null : createSigner(secret, 'test');
  const onCut = (_file: string, bytes: number) => {
    seen.cut += bytes;
  };
  const given = { dir, id, prefix: 'flyball', maxBytes, signer, nowMs };
  const sink = createFileSink({ ...given, redis, owner, leaseMs: 15_000, onCut });
  return Object.assign(exporterTo(redis, sink, seen, { nowMs, monotonicMs }), { sink, seen });
}

export function exporterTo(
  redis: Redis,
  sink: Sink,
  seen = { exported: 0, failed: 0, writes: false },
  clock: Clock = systemClock,
): Exporter {
  return createExporter({
    ...{ redis, prefix: 'flyball', sink, clock, log: pino({ level: 'silent' }) },
    limiters: async () => [address],
    seen: {
      exported(entries) {
        seen.exported += entries;
      },
      failed() {
        seen.failed++;
      },
      lag() {},
      writes(yes) {
        seen.writes = yes;
      },
    },
  });
}

export function proof(dir: string, open?: string, anchors: { hash: string; name: string }[] = []) {
  const verifier = open === undefined ? null : createVerifier([{ pem: open, from: 'test' }]);
  return verifyFolder(dir, { anchors: { limiters: [], of: () => anchors }, verifier });
}

export function files(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith('audit-'))
    .sort();
}

/** Rewrites the lines of a file. */
export function edit(dir: string, file: string, alter: (lines: string[]) => string[]): void {
  const lines = readFileSync(join(dir, file), 'utf8').trimEnd().split('\n');
  writeFileSync(join(dir, file), `${alter(lines).join('\n')}\n`);
}
