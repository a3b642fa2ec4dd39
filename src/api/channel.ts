/** One stream of events, told to many: numbered, with the newest kept for who comes back, a whole picture for who does not. Stage: api. */
import { randomBytes } from 'node:crypto';
import { inertLine } from '../unsafe.js';
import type { SnapshotEvent, StreamEvent } from './types.js';

/** Who is told. */
export interface Watcher {
  /** `whole`: a picture, or what was missed, which may be large. The bytes are shared by all who are told. */
  send(bytes: Uint8Array, whole: boolean): void;
  end(): void;
}

export interface Channel {
  readonly clients: number;
  /** @returns how it leaves */
  join(lastId: string | undefined, client: Watcher): () => void;
  tell<E extends StreamEvent['event']>(
    event: E,
    data: Extract<StreamEvent, { event: E }>['data'],
  ): void;
  /** A first look is over: who waits for a picture gets it. */
  ready(): void;
  close(): void;
}

/** Kept for who comes back: some minutes of a quiet fleet, some seconds of a busy one. */
const KEPT_EVENTS = 256;
const KEPT_BYTES = 4_000_000;

export function createChannel(picture: () => SnapshotEvent): Channel {
  /** Ids of another start, or of before a rest, are not known. */
  const start = randomBytes(6).toString('base64url');
  const clients = new Set<Watcher>();
  const waiting = new Set<Watcher>();
  const kept: { n: number; bytes: Uint8Array }[] = [];
  let keptBytes = 0;
  const encoder = new TextEncoder();
  let n = 0;
  let looked = false;

  function bytesOf(event: string, data: object): Uint8Array {
    const text = inertLine(JSON.stringify(data));
    return encoder.encode(`id: ${start}-${n}\nevent: ${event}\ndata: ${text}\n\n`);
  }

  function missed(lastId: string | undefined): Uint8Array[] | null {
    const match = /^([\w-]{8})-(\d{1,15})$/.exec(lastId ?? '');
    if (match === null || match[1] !== start) return null;
    const seen = Number(match[2]);
    if (seen > n || (seen < n && (kept[0]?.n ?? n + 1) > seen + 1)) return null;
    return kept.filter((one) => one.n > seen).map(({ bytes }) => bytes);
  }

  const snapshot = () => bytesOf('snapshot', picture());

  return {
    get clients() {
      return clients.size + waiting.size;
    },
    join(lastId, client) {
      const events = missed(lastId);
      if (events !== null) {
        clients.add(client);
        for (const bytes of events) client.send(bytes, true);
      } else if (looked) {
        clients.add(client);
        client.send(snapshot(), true);
      } else waiting.add(client);
      return () => {
        clients.delete(client);
        waiting.delete(client);
      };
    },
    tell(event, data) {
      n += 1;
      const bytes = bytesOf(event, data);
      kept.push({ n, bytes });
      keptBytes += bytes.byteLength;
      while (kept.length > KEPT_EVENTS || (keptBytes > KEPT_BYTES && kept.length > 1)) {
        keptBytes -= kept.shift()!.bytes.byteLength;
      }
      for (const client of [...clients]) client.send(bytes, false);
    },
    ready() {
      looked = true;
      if (waiting.size === 0) return;
      const bytes = snapshot();
      for (const client of waiting) {
        clients.add(client);
        client.send(bytes, true);
      }
      waiting.clear();
    },
    close() {
      for (const client of [...clients, ...waiting]) client.end();
    },
  };
}
