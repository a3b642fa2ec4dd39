/** The live table of `top`: looks once a second, draws, and carries out keys; heals when Redis comes back. Stage: cli. */
import { setTimeout } from 'node:timers/promises';
import pc from 'picocolors';
import { describeFault } from '../faults.js';
import type { LimiterAddress } from '../redis/keys.js';
import { within } from '../sense/deadline.js';
import { byFlags } from './flag-names.js';
import { createInterrupt } from './interrupt.js';
import type { CliIo } from './output.js';
import type { Session } from './session.js';
import { clean } from './text.js';
import { draw, pageRows } from './top-draw.js';
import type { Key } from './top-keys.js';
import { createLook, type Look } from './top-look.js';
import { edited, emptyModel, looked, pressed, type TopModel, type Wish } from './top-model.js';
import { createScreen, type Screen } from './top-screen.js';
import { carryOut, type Verb } from './top-verbs.js';

const EVERY_MS = 1000;
/** A look that takes longer counts as no answer: the screen must say so while a person still watches it. */
const LOOK_MS = 3000;

/** Resolves when the person quits, or a signal ends it: true then. */
export async function liveTop(io: CliIo, session: Session): Promise<boolean> {
  let model: TopModel = emptyModel();
  let answer: ((text: string | null) => void) | null = null;
  let addresses = new Map<string, LimiterAddress>();
  const quit = new AbortController();
  const interrupt = createInterrupt();
  process.on('SIGHUP', interrupted);
  const ends = AbortSignal.any([quit.signal, interrupt.signal]);
  const look = createLook(session);
  const unicode = speaksUnicode(io.env);
  const plain = pc.createColors(false);

  let screen: Screen | null = null;
  let busy = false;
  /** Typed before the question that it answers was there. */
  let ahead: Key[] = [];

  function interrupted(): void {
    quit.abort();
  }

  function render(): void {
    // The first size is told while the screen is still being made.
    if (screen === null) return;
    const { columns, rows } = screen;
    screen.show(draw(model, { columns, rows, c: io.c, unicode }));
  }

  function become(next: TopModel): void {
    model = next;
    render();
  }

  function key(name: Key): void {
    if (model.question !== null && name !== 'ctrl-z' && name !== 'ctrl-l') {
      answering(name);
      return;
    }
    if (busy && name !== 'ctrl-c') {
      ahead.push(name);
      return;
    }
    const [next, wish] = pressed(model, name, pageRows(screen?.rows ?? 24));
    become(next);
    if (wish !== null) act(wish);
  }

  function answering(name: Key): void {
    const { question } = model;
    if (question === null) return;
    if (name === 'ctrl-c') quit.abort();
    if (name === 'enter' || name === 'escape' || name === 'ctrl-c' || name === 'ctrl-d') {
      become({ ...model, question: null });
      const done = answer;
      answer = null;
      done?.(name === 'enter' ? question.typed : null);
    } else become({ ...model, question: { ...question, typed: edited(question.typed, name) } });
  }

  function ask(label: string, lines: readonly string[] = []): Promise<string | null> {
    return new Promise((resolve) => {
      answer = resolve;
      become({ ...model, question: { label, lines, typed: '' } });
      // A preview is to be seen before it is answered: what was typed before it came is no answer to it.
      const typed = lines.length > 0 ? [] : ahead;
      ahead = [];
      for (const [i, name] of typed.entries()) {
        if (model.question === null) ahead = typed.slice(i);
        if (model.question === null) break;
        answering(name);
      }
    });
  }

  function act(wish: Wish): void {
    if (wish === 'quit') quit.abort();
    else if (wish === 'redraw') render();
    else if (wish === 'stop') screen?.suspend();
    else void verb(wish);
  }

  async function verb(wish: Verb): Promise<void> {
    const view = model.views.find(({ limiter }) => limiter === model.cursor);
    const address = addresses.get(model.cursor ?? '');
    if (view === undefined || address === undefined) return;
    busy = true;
    try {
      become({ ...model, message: await carryOut(wish, view, { session, address, ask, plain }) });
    } catch (error) {
      become({ ...model, question: null, message: clean(describeFault(byFlags(error)).message) });
    } finally {
      busy = false;
      ahead = [];
    }
  }

  async function once(): Promise<void> {
    try {
      const seen: Look = await within(LOOK_MS, look());
      addresses = new Map(seen.addresses.map((address) => [address.name, address]));
      become(looked(model, seen.views, seen.atMs));
    } catch (error) {
      become({ ...model, away: describeFault(error).message });
    }
  }

  try {
    screen = createScreen(io, { key, resize: render });
    render();
    const over = ended(ends);
    while (!ends.aborted) {
      const began = performance.now();
      await Promise.race([once(), over]);
      const took = performance.now() - began;
      // Many limiters take long to read: no more than half of the time goes into looking.
      const pause = Math.max(EVERY_MS - took, took);
      await setTimeout(pause, undefined, { signal: ends }).catch(() => {});
    }
    return interrupt.signal.aborted;
  } finally {
    screen?.close();
    interrupt.release();
    process.off('SIGHUP', interrupted);
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** By the locale, as programs of a terminal ask it; without one a terminal of today is taken for granted. */
function speaksUnicode({ LC_ALL, LC_CTYPE, LANG, TERM }: NodeJS.ProcessEnv): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return TERM !== 'linux' && (locale === '' || /utf-?8/i.test(locale));
}
