/** The table of `top` for scripts and pipes: once as text or JSON, or as a line of JSON each second. Stage: cli. */
import { setTimeout } from 'node:timers/promises';
import { describeFault } from '../faults.js';
import type { CliIo } from './output.js';
import type { Session } from './session.js';
import { clean, safeJsonLine } from './text.js';
import { tableHead, tableRow } from './top-columns.js';
import { createLook, type Look } from './top-look.js';

const EVERY_MS = 1000;

/** False: a limiter could not be read, and is left out. */
export async function oneTop(io: CliIo, session: Session): Promise<boolean> {
  const look = await createLook(session)();
  tellUnread(io, look);
  if (io.flags.json) io.json(jsonOf(session, look));
  else if (look.views.length > 0) {
    const rows = look.views.map((view) => tableRow(view, io.c));
    io.out(io.table(tableHead(), rows));
  } else {
    io.say(
      `No limiter is known in Redis at ${session.url}. flyball run adopts policies and registers them.`,
    );
  }
  return look.unread.length === 0;
}

/** Until `signal`. A look that fails is a line too: who reads them knows that it was not quiet. */
export async function streamTop(io: CliIo, session: Session, signal: AbortSignal): Promise<void> {
  const look = createLook(session);
  while (!signal.aborted) {
    try {
      io.out(safeJsonLine({ schema: 1, ...jsonOf(session, await look()) }));
    } catch (error) {
      const { code, message } = describeFault(error);
      io.out(safeJsonLine({ schema: 1, redis: session.url, error: { code, message } }));
    }
    await setTimeout(EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

function jsonOf({ url }: Session, { atMs, views, unread }: Look): Record<string, unknown> {
  return {
    ...{ redis: url, atMs, limiters: views },
    unread: unread.map(({ limiter, error }) => ({ limiter, reason: describeFault(error).message })),
  };
}

function tellUnread(io: CliIo, { unread }: Look): void {
  for (const { limiter, error } of unread) {
    io.warn(`${clean(limiter)} is left out: ${clean(describeFault(error).message)}`);
  }
}
