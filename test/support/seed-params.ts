/** Params for a test, created as the product creates them: by the actuating script, with an audit entry. */
import type { Cluster, Redis } from 'ioredis';
import { sealEntry } from '../../src/actuate/entry.js';
import { type ActuateReply, GENESIS_HASH } from '../../src/redis/calls.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { type ParamChange, type Params, parseParams } from '../../src/redis/params.js';
import { actuate } from '../../src/redis/scripts.js';
import { BARE } from './bare-params.js';

/** rate 100/s, capacity 200, no cap, no subjects, bounds 1 … 1000, mode auto, closed. */
export const SEED: ParamChange = {
  ...BARE,
  rate: 100,
  capacity: 200,
  inFlightMax: 0,
  policyRate: 100,
  minRate: 1,
  maxRate: 1000,
  minCapacity: 1,
  maxCapacity: 1000,
  minInFlight: 0,
  maxInFlight: 1000,
  safeRate: 100,
  safeInFlight: 0,
};

export interface SeedOptions {
  /** Default 1 000 000; must lie above every epoch of the audit log. */
  epoch?: number;
  revision?: number;
  refloor?: 'empty' | 'full' | number;
  policy?: { hash: string; json: string };
  /** Redis time (µs) instead of TIME. */
  nowUs?: number;
}

/** Creates the params (a person's `create`); throws when the script refuses. Bounds widen to fit the overrides. */
export async function seedParams(
  redis: Redis | Cluster,
  keys: LimiterKeys,
  overrides: ParamChange = {},
  options: SeedOptions = {},
): Promise<Params> {
  const change = { ...SEED, ...overrides };
  change.maxRate = overrides.maxRate ?? Math.max(SEED.maxRate!, change.rate!);
  change.minRate = overrides.minRate ?? Math.min(SEED.minRate!, change.rate! || 1);
  change.maxCapacity = overrides.maxCapacity ?? Math.max(SEED.maxCapacity!, change.capacity!);
  change.minCapacity = overrides.minCapacity ?? Math.min(SEED.minCapacity!, change.capacity!);
  change.policyRate = overrides.policyRate ?? (change.rate! || 1);
  change.safeRate = overrides.safeRate ?? (change.rate! || 1);
  const { epoch = 1_000_000, revision = 1 } = options;
  const reply = await actuate(redis, {
    keys,
    authority: { kind: 'person' },
    expected: { epoch, revision },
    create: true,
    change,
    cause: 'person',
    ...(options.refloor === undefined ? {} : { refloor: options.refloor }),
    entry: await testEntry(redis, keys, epoch, revision, 'seeded for a test'),
    leaseMs: 0,
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    ...(options.nowUs === undefined ? {} : { nowUs: options.nowUs }),
  });
  if (reply.status !== 'ok') throw new Error(`seedParams: ${reply.reason}: ${reply.detail}`);
  return (await storedParams(redis, keys))!;
}

export interface ChangeOptions {
  cause?: 'law' | 'breaker' | 'policy' | 'person' | 'settle' | 'schedule';
  refloor?: 'empty' | 'full' | number;
  nowUs?: number;
}

/** A person's change on top of what is there; returns the script's answer, refusals included. */
export async function changeParams(
  redis: Redis | Cluster,
  keys: LimiterKeys,
  change: ParamChange,
  options: ChangeOptions = {},
): Promise<ActuateReply> {
  const params = await storedParams(redis, keys);
  if (params === null) throw new Error('changeParams: the params are missing');
  const { epoch, revision } = params;
  return actuate(redis, {
    keys,
    authority: { kind: 'person' },
    expected: { epoch, revision },
    create: false,
    change,
    cause: options.cause ?? 'person',
    ...(options.refloor === undefined ? {} : { refloor: options.refloor }),
    entry: await testEntry(redis, keys, epoch, revision + 1, 'changed by a test'),
    leaseMs: 0,
    ...(options.nowUs === undefined ? {} : { nowUs: options.nowUs }),
  });
}

export async function storedParams(
  redis: Redis | Cluster,
  keys: LimiterKeys,
): Promise<Params | null> {
  return parseParams(await redis.hgetall(keys.params));
}

/** An entry sealed on the newest head. */
export async function testEntry(
  redis: Redis | Cluster,
  keys: LimiterKeys,
  epoch: number,
  revision: number,
  sentence: string,
) {
  const newest = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1);
  const fields = newest[0]?.[1] ?? [];
  const prev = fields[fields.indexOf('hash') + 1] ?? GENESIS_HASH;
  return sealEntry(fields.length > 0 ? prev : GENESIS_HASH, {
    v: 1,
    kind: 'change',
    limiter: keys.name,
    epoch,
    revision,
    atMs: 1_700_000_000_000,
    actor: { kind: 'person', name: 'test' },
    reason: 'test',
    sentence,
    before: null,
    after: null,
    policyHash: '',
  });
}
