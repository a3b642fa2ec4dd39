/** One stream of events, told to many: numbered, with the newest kept for who comes back, a whole picture for who does not. Stage: api. */
import { randomBytes } from 'node:crypto';
import { inertLine } from '../unsafe.js';
import type { SnapshotEvent, StreamEvent } from './types.js';

/** Who is told. `send` takes an event's text; `size`: of the whole picture, which may be large. */
export interface Watcher {
  send(text: string, whole: boolean): void;
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
const KEPT_CHARACTERS = 4_000_000;

export function createChannel(picture: () => SnapshotEvent): Channel {
  /** Ids of another start, or of before a rest, are not known. */
  const start = randomBytes(6).toString('base64url');
  const clients = new Set<Watcher>();
  const waiting = new Set<Watcher>();
  const kept: { n: number; text: string }[] = [];
  let characters = 0;
  let n = 0;
  let looked = false;

  function textOf(event: string, data: object): string {
    return `id: ${start}-${n}\nevent: ${event}\ndata: ${inertLine(JSON.stringify(data))}\n\n`;
  }

  function missed(lastId: string | undefined): string[] | null {
    const match = /^([\w-]{8})-(\d{1,15})$/.exec(lastId ?? '');
    if (match === null || match[1] !== start) return null;
    const seen = Number(match[2]);
    if (seen > n || (seen < n && (kept[0]?.n ?? n + 1) > seen + 1)) return null;
    return kept.filter((one) => one.n > seen).map(({ text }) => text);
  }

  const show = (client: Watcher) => client.send(textOf('snapshot', picture()), true);

  return {
    get clients() {
      return clients.size + waiting.size;
    },
    join(lastId, client) {
      const texts = missed(lastId);
      if (texts !== null) {
        clients.add(client);
        for (const text of texts) client.send(text, true);
      } else if (looked) {
        clients.add(client);
        show(client);
      } else waiting.add(client);
      return () => {
        clients.delete(client);
        waiting.delete(client);
      };
    },
    tell(event, data) {
      n += 1;
      const text = textOf(event, data);
      kept.push({ n, text });
      characters += text.length;
      while (kept.length > KEPT_EVENTS || (characters > KEPT_CHARACTERS && kept.length > 1)) {
        characters -= kept.shift()!.text.length;
      }
      for (const client of [...clients]) client.send(text, false);
    },
    ready() {
      looked = true;
      for (const client of waiting) {
        clients.add(client);
        show(client);
      }
      waiting.clear();
    },
    close() {
      for (const client of [...clients, ...waiting]) client.end();
    },
  };
}
