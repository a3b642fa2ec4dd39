/** Browser sessions: a random cookie for a token that was proved once; known to this process alone, for some hours. Stage: api. */
import { createHash, randomBytes } from 'node:crypto';
import type { Caller } from './roles.js';
import type { TokenRecord } from './tokens.js';

export const SESSION_MS = 12 * 3_600_000;
/** Past it the oldest ends. */
const MOST_SESSIONS = 1_000;

export interface Sessions {
  /** @returns the cookie's value */
  begin(token: TokenRecord, nowMs: number): string;
  /** Null: not known, over, or its token counts no more. */
  find(cookie: string, tokens: readonly TokenRecord[], nowMs: number): Caller | null;
  end(cookie: string): void;
}

export function createSessions(): Sessions {
  /** By hash, so that the look-up's time tells nothing of a cookie. */
  const known = new Map<string, { sha256: Buffer; expiresMs: number }>();

  return {
    begin({ sha256 }, nowMs) {
      const cookie = randomBytes(32).toString('base64url');
      if (known.size >= MOST_SESSIONS) known.delete(known.keys().next().value!);
      known.set(keyOf(cookie), { sha256, expiresMs: nowMs + SESSION_MS });
      return cookie;
    },
    find(cookie, tokens, nowMs) {
      const session = known.get(keyOf(cookie));
      if (session === undefined) return null;
      // The role of today: a token that was taken back or lowered ends here too.
      const token = tokens.find((one) => one.sha256.equals(session.sha256));
      if (token === undefined || session.expiresMs <= nowMs) {
        known.delete(keyOf(cookie));
        return null;
      }
      const { name, role } = token;
      return { name, role, by: 'cookie', expiresMs: session.expiresMs };
    },
    end(cookie) {
      known.delete(keyOf(cookie));
    },
  };
}

function keyOf(cookie: string): string {
  return createHash('sha256').update(cookie, 'utf8').digest('hex');
}
