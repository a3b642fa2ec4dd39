/** What a change would do, asked again with each of a person's answers; then written, if that still holds. Stage: dashboard. */
import { useLayoutEffect, useState } from 'preact/hooks';
import { ApiError } from '../client.js';
import { refusedWords } from '../data/session.js';

/** After so long without a key the preview is asked for. */
const PREVIEW_AFTER_MS = 250;

export interface DryRunOptions<A> {
  /** All that the preview hangs on, as text; null: not all is given yet. */
  question: string | null;
  ask: () => Promise<A>;
  /** Of a plan that can be written. */
  ready: (plan: A) => boolean;
  write: (plan: A) => Promise<A>;
  onDone: (answer: A) => void;
}

export interface DryRun<A> {
  /** Of what is asked now; null: not known yet. */
  plan: A | null;
  fault: string | null;
  /** It changed since it was shown: said until the next try. */
  moved: boolean;
  busy: boolean;
  mayWrite: boolean;
  write: () => Promise<void>;
}

export function useDryRun<A>(options: DryRunOptions<A>): DryRun<A> {
  const { question, ask, ready, write, onDone } = options;
  const [planned, setPlanned] = useState<{ of: string; answer: A } | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [moved, setMoved] = useState(false);
  const [busy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  // Of another question it is no plan: Enter right after a key must not write what was never shown.
  const of = question === null ? null : `${turn} ${question}`;
  const plan = planned !== null && planned.of === of ? planned.answer : null;
  const mayWrite = plan !== null && ready(plan) && !busy;

  useLayoutEffect(() => {
    setFault(null);
    if (of === null) return;
    let wanted = true;
    const timer = setTimeout(() => {
      ask().then(
        (answer) => wanted && setPlanned({ of, answer }),
        (error) => wanted && setFault(refusedWords(error)),
      );
    }, PREVIEW_AFTER_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [of]);

  async function writeIt(): Promise<void> {
    if (!mayWrite) return;
    setBusy(true);
    setMoved(false);
    try {
      onDone(await write(plan));
    } catch (error) {
      const changed = error instanceof ApiError && error.status === 409;
      if (changed) {
        setMoved(true);
        setTurn((n) => n + 1);
      } else setFault(refusedWords(error));
    } finally {
      setBusy(false);
    }
  }
  return { plan, fault, moved, busy, mayWrite, write: writeIt };
}
