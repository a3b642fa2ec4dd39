/** Who this browser is to the daemon: asked at the start, after a lost stream, and changed by signing in and out. Stage: dashboard. */
import { ApiError, api } from '../client.js';
import { update } from './store.js';

/** Never throws: what went wrong stands in the store, and what was known before stays. */
export async function readSession(): Promise<void> {
  try {
    update({ session: await api.session(), sessionFault: null });
  } catch (error) {
    update({ sessionFault: wordsOf(error) });
  }
}

/** @throws {ApiError} when the token is not one */
export async function signIn(token: string): Promise<void> {
  update({ session: await api.signIn(token), sessionFault: null });
}

export async function signOut(): Promise<void> {
  await api.signOut();
  await readSession();
}

/** Of a session that ended meanwhile: the page learns it, and says what to do rather than what a header lacks. */
export function refusedWords(error: unknown): string {
  if (!(error instanceof ApiError) || error.status !== 401) return wordsOf(error);
  void readSession();
  return 'You are no longer signed in, and nothing was written. Close this, sign in, and do it again.';
}

/** What to tell a person of something that was thrown. */
export function wordsOf(error: unknown): string {
  if (error instanceof ApiError || error instanceof Error) return error.message;
  return String(error);
}
