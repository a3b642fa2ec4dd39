/** A promise with a time limit: the tick goes on, whatever a source does. Stage: sense. */

export class DeadlineError extends Error {
  constructor(readonly deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`);
  }
}

/** Rejects with a `DeadlineError` when `work` takes longer; a later outcome of it is ignored. */
export function within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  return new Promise((ok, no) => {
    const timer = setTimeout(() => no(new DeadlineError(deadlineMs)), deadlineMs);
    work.then(
      (value) => {
        clearTimeout(timer);
        ok(value);
      },
      (error) => {
        clearTimeout(timer);
        no(error);
      },
    );
  });
}

/** Waits for `work`, but no longer than `ms`; never rejects. What takes longer goes on by itself. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const ended = work.then(
    () => {},
    () => {},
  );
  if (ms === Number.POSITIVE_INFINITY) return ended;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((ok) => {
    timer = setTimeout(ok, Math.max(0, ms));
  });
  await Promise.race([ended, over]);
  clearTimeout(timer);
}
