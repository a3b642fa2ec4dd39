/** Audit entries for tests of episodes: a limiter at 400/s and a cap of 44, moved step by step. */

import type { Redis } from 'ioredis';
import type { EntryBody, EntryValues } from '../../src/actuate/entry.js';
import { sealEntry } from '../../src/actuate/entry.js';
import type { EpisodeEntry } from '../../src/audit/episodes.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../../src/redis/keys.js';

/** 2026-05-04 02:14:00 UTC. */
export const AT = Date.UTC(2026, 4, 4, 2, 14);

export const STEADY: EntryValues = {
  mode: 'auto',
  state: 'closed',
  rate: 400,
  capacity: 400,
  inFlightMax: 44,
};

export interface Step {
  /** Seconds after AT. */
  s: number;
  to?: Partial<EntryValues>;
  reason?: string;
  sentence?: string;
  /** A person's name; absent: a daemon. */
  by?: string;
  detail?: Record<string, unknown>;
  /** What would be, in place of a change. */
  note?: Partial<EntryValues> | null;
  law?: string;
}

/** What a law's decision says of its worst reading: in its sentence, and as the entry's detail. */
export function saw(
  signal: string,
  value: string,
  ratio: number,
  setpoint: string,
  rest = 'cut.',
): Pick<Step, 'sentence' | 'detail'> {
  return {
    sentence: `${signal} ${value} is ${ratio} × the ${setpoint} setpoint; ${rest}`,
    detail: { over: { signal, value, setpoint, ratio } },
  };
}

/** Each step goes on from the one before; `from` null: the limiter is created by the first. */
export function entriesOf(
  steps: readonly Step[],
  from: EntryValues | null = STEADY,
): EpisodeEntry[] {
  let before = from;
  let revision = from === null ? 0 : 119;
  return steps.map(({ s, to, reason = 'law_cut', sentence, by, detail, note, law }, i) => {
    const isNote = note !== undefined;
    const after = isNote ? note && { ...STEADY, ...note } : { ...(before ?? STEADY), ...to };
    const body: EpisodeEntry['body'] = {
      atMs: AT + s * 1000,
      actor: by === undefined ? { kind: 'autopilot', name: 'd1' } : { kind: 'person', name: by },
      reason,
      sentence: sentence ?? `${reason} it is.`,
      before,
      after,
      ...(detail && { detail }),
      ...(law && { law }),
    };
    if (!isNote) {
      revision += 1;
      before = after;
    }
    return {
      id: `${AT + s * 1000}-${i}`,
      kind: isNote ? 'note' : 'change',
      epoch: 1,
      revision,
      body,
    };
  });
}

/** The same as rows of a stream, chained. */
export function streamRows(
  limiter: string,
  entries: readonly EpisodeEntry[],
): [string, string[]][] {
  let prev = GENESIS_HASH;
  return entries.map(({ id, kind, epoch, revision, body }) => {
    const whole: EntryBody = { v: 1, kind, limiter, epoch, revision, policyHash: '', ...body };
    const sealed = sealEntry(prev, whole);
    const fields = [
      ...['kind', kind, 'epoch', String(epoch), 'revision', String(revision)],
      ...['hash', sealed.hash, 'prev', prev, 'body', sealed.body],
    ];
    prev = sealed.hash;
    return [id, fields];
  });
}

/** In place of a limiter's log: these steps, the last of them `agoS` seconds ago. */
export async function storeLog(
  redis: Redis,
  limiter: LimiterAddress,
  steps: readonly Step[],
  agoS: number,
): Promise<void> {
  const { audit } = limiterKeys(limiter);
  const nowS = Number((await redis.time())[0]);
  const shiftMs = (nowS - agoS) * 1000 - (AT + steps.at(-1)!.s * 1000);
  const moved = entriesOf(steps).map((entry) => ({
    ...entry,
    id: `${Number.parseInt(entry.id, 10) + shiftMs}-${entry.id.split('-')[1]}`,
    body: { ...entry.body, atMs: entry.body.atMs + shiftMs },
  }));
  const pipeline = redis.pipeline().del(audit);
  for (const [id, fields] of streamRows(limiter.name, moved)) pipeline.xadd(audit, id, ...fields);
  await pipeline.exec();
}

/** Three episodes an hour apart, the last of them a person's. */
export const THREE: Step[] = [
  { s: 0, to: { rate: 200 }, ...saw('p99', '612 ms', 1.22, '500 ms') },
  { s: 30, to: { rate: 390 }, reason: 'law_raise' },
  {
    s: 3600,
    to: { state: 'open' },
    reason: 'breaker_trip',
    sentence: 'failures prove 33 %; open.',
  },
  { s: 3630, to: { state: 'closed' }, reason: 'breaker_closed' },
  {
    s: 7200,
    by: 'alice@db (unverified)',
    reason: 'pin',
    to: { rate: 100 },
    detail: { why: 'sale' },
  },
];
