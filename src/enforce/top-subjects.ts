/** Who takes most and who is denied most, by a sketch in this process that is added to Redis by the minute. Stage: enforce. */
import type { Clock } from '../clock.js';
import { encodeSubject } from '../redis/keys.js';
import { addTop } from '../redis/scripts.js';
import { MINUTE_MS, TOP_FIELD, TOP_SUBJECTS, type TopKind } from '../redis/top-fields.js';
import type { KeyFinder } from './address.js';
import { addHeavy, createHeavy, type Heavy, trimHeavy } from './heavy-hitters.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { RedisTime } from './redis-time.js';
import { createReservoir } from './reservoir.js';
import { refusalOf, type Warn } from './warnings.js';

/** Nobody waits for it. */
const FLUSH_DEADLINE_MS = 500;
/** Sent with every tenth beat: ten seconds. */
const BEATS_A_FLUSH = 10;

export interface TopSubjects {
  /** One decision about a subject, on the hot path: one write into an array, or one count. */
  decided(subject: string, cost: number, denied: boolean): void;
  /** Once a second: reads what was decided, and now and then adds it to Redis. Never rejects. */
  beat(): Promise<void>;
  /** Adds what is left. */
  flush(): Promise<void>;
}

export interface TopSubjectsOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  clock: Clock;
  warn: Warn;
  random?: () => number;
}

export function createTopSubjects(options: TopSubjectsOptions): TopSubjects {
  const { redis, finder, time, clock, warn } = options;
  const reservoir = createReservoir(options.random);
  let sketch = createSketch();
  let beats = 0;

  /** A second's takes into the sketch; past the reservoir's size each stands for several. */
  function read(): void {
    const { seen, read } = reservoir.drain((subject, weight, takes) => {
      if (weight < 0) addHeavy(sketch.denied, subject, takes);
      else addHeavy(sketch.taken, subject, weight * takes);
    });
    if (seen === 0) return;
    trimHeavy(sketch.taken, TOP_SUBJECTS);
    trimHeavy(sketch.denied, TOP_SUBJECTS);
    sketch.seen += seen;
    sketch.read += read;
  }

  /** Added once or never, as telemetry is. */
  async function flush(): Promise<void> {
    read();
    const full = sketch;
    if (full.seen === 0) return;
    const nowMs = clock.monotonicMs();
    const redisMs = time.nowMs(nowMs);
    const { keys } = finder;
    sketch = createSketch();
    if (!options.link().up || redisMs === null || keys === null) return;
    const minute = Math.floor(redisMs / MINUTE_MS);
    const fields = fieldsOf(full);
    try {
      const refused = await options
        .link()
        .within(nowMs + FLUSH_DEADLINE_MS, () =>
          refusalOf(addTop(redis, { keys, minute, fields })),
        );
      if (refused === null) return;
      warn(
        'FLYBALL_W_TOP_REFUSED',
        `limiter ${keys.name}: top subjects cannot be written (${refused}). Give the service the rights of deploy/redis/users.acl, or set topSubjects: false.`,
      );
    } catch {
      // The link has counted it; what was counted here is lost, never added twice.
    }
  }

  return {
    decided(subject, cost, denied) {
      reservoir.offer(subject, denied ? -1 : cost);
    },
    async beat() {
      beats += 1;
      if (beats % BEATS_A_FLUSH === 0) await flush();
      else read();
    },
    flush,
  };
}

interface Sketch extends Record<TopKind, Heavy> {
  seen: number;
  read: number;
}

function createSketch(): Sketch {
  return { taken: createHeavy(), denied: createHeavy(), seen: 0, read: 0 };
}

function fieldsOf(sketch: Sketch): [string, number][] {
  const fields: [string, number][] = [
    [TOP_FIELD.seen, sketch.seen],
    [TOP_FIELD.read, sketch.read],
  ];
  for (const kind of ['taken', 'denied'] as const) {
    const { counts, error, total } = sketch[kind];
    if (total === 0) continue;
    fields.push([TOP_FIELD.total(kind), total], [TOP_FIELD.error(kind), error]);
    for (const [subject, count] of counts) {
      fields.push([TOP_FIELD.subject(kind, encodeSubject(subject)), count]);
    }
  }
  return fields;
}
