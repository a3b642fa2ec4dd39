/** The right to actuate one limiter: a key with a TTL and a fencing token that only grows. Stage: actuate. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Authority, HeartbeatReply, LeaseReply } from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { heartbeat, lease } from '../redis/scripts.js';
import type { RedisClient } from './actuator.js';

/** `host:pid:random`: unique to one start of one process, readable in an incident. */
export function createOwnerId(name: string = hostname()): string {
  const host = name.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 64);
  return `${host}:${process.pid}:${randomBytes(4).toString('hex')}`;
}

export interface Lease {
  readonly owner: string;
  /** The token of the last grant, or null. Only Redis knows whether it is still the newest. */
  readonly token: number | null;
  /** Takes the lease when it is free, renews it when it is ours. */
  acquire(): Promise<LeaseReply>;
  /** Says that an autopilot lives (`validUntil`), renews the lease, stores the checkpoint; no revision, no entry. */
  beat(checkpoint: string): Promise<HeartbeatReply | null>;
  /** To be called when Redis refused a write for want of the lease. */
  lost(): void;
  /** Gives the lease back so that the next owner need not wait; never fails the caller's stop. */
  release(): Promise<void>;
  authority(): Authority | null;
}

/** A lease is a promise by Redis, checked inside every write: nothing here decides by the local clock. */
export function createLease(options: {
  redis: RedisClient;
  address: LimiterAddress;
  owner: string;
  leaseMs: number;
}): Lease {
  const { redis, owner, leaseMs } = options;
  const keys = limiterKeys(options.address);
  let token: number | null = null;
  return {
    owner,
    get token() {
      return token;
    },
    async acquire() {
      const reply = await lease(redis, {
        keys,
        op: 'acquire',
        owner,
        ...(token === null ? {} : { token }),
        leaseMs,
      });
      token = reply.status === 'held' ? reply.token : null;
      return reply;
    },
    async beat(checkpoint) {
      return token === null ? null : heartbeat(redis, { keys, owner, token, leaseMs, checkpoint });
    },
    lost() {
      token = null;
    },
    async release() {
      if (token === null) return;
      const released = token;
      token = null;
      await lease(redis, { keys, op: 'release', owner, token: released, leaseMs });
    },
    authority() {
      return token === null ? null : { kind: 'lease', owner, token };
    },
  };
}
