/** What a caller may do: three roles, each with all that those before it may. Pure. Stage: api. */
import type { Role, SessionAnswer } from './types.js';

/** From the least on. */
export const ROLES = ['reader', 'operator', 'admin'] as const satisfies readonly Role[];

/** Who asks, as far as they have proved it. */
export interface Caller {
  /** Of their token; null: nobody has said who they are. */
  name: string | null;
  /** null: they may only give a token. */
  role: Role | null;
  by: SessionAnswer['by'];
  /** When their cookie ends, wall ms; null without one. */
  expiresMs: number | null;
}

export const NOBODY: Caller = { name: null, role: null, by: 'nobody', expiresMs: null };
/** Anybody on this machine, where reading is open. */
export const ANYBODY: Caller = { name: null, role: 'reader', by: 'open', expiresMs: null };

export function mayDo(role: Role | null, needed: Role): boolean {
  return role !== null && ROLES.indexOf(role) >= ROLES.indexOf(needed);
}
