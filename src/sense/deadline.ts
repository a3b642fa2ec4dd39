/** A promise with a time limit: the tick goes on, whatever a source does. Stage: sense. */

export class DeadlineError extends Error {
  constructor(readonly deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`);
  }
}

/** Rejects with a `DeadlineError` when `work` takes longer; a later outcome of it is ignored. */
export async function within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_ok, no) => {
    timer = setTimeout(() => no(new DeadlineError(deadlineMs)), deadlineMs);
  });
  work.catch(() => {});
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
