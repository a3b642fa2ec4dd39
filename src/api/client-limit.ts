/** How often one client may ask: Flyball's own bucket, in this process, so that it holds without Redis. Stage: api. */
import { createLocalBucket, type LocalAnswer } from '../enforce/local-bucket.js';

/** Requests per second of a client, of all clients, and how many at once. A dashboard asks for some a minute. */
const CLIENT = { rate: 20, capacity: 100 };
const ALL = { rate: 200, capacity: 1_000 };

export interface ClientLimit {
  take(client: string, nowMs: number): LocalAnswer;
}

export function createClientLimit(client = CLIENT, all = ALL): ClientLimit {
  const numbers = {
    rate: all.rate,
    capacity: all.capacity,
    inFlightMax: 0,
    subjectRate: client.rate,
    subjectCapacity: client.capacity,
  };
  const bucket = createLocalBucket({
    mode: 'auto',
    unknown: false,
    processes: 1,
    fallback: () => numbers,
    openAt: () => false,
    openForMs: () => null,
  });
  return { take: (name, nowMs) => bucket.take(name, 1, nowMs) };
}
