/** Who is asking: a token for a cookie, and the cookie's end. Stage: api. */
import { z } from 'zod';
import { VERSION } from '../../version.js';
import { cookieHeader, cookieOf, unauthorized } from '../access.js';
import { type Caller, NOBODY } from '../roles.js';
import { type ApiDeps, route } from '../route.js';
import { sessionAnswer } from '../schemas/session.js';
import { SESSION_MS } from '../sessions.js';
import { findToken } from '../tokens.js';
import type { SessionAnswer } from '../types.js';

function told({ name, role, by, expiresMs }: Caller, deps: ApiDeps): SessionAnswer {
  return { schema: 1, name, role, by, expiresMs, version: VERSION, daemon: deps.daemon.name };
}

export const sessionRoutes = [
  route({
    method: 'get',
    path: '/session',
    id: 'readSession',
    summary: 'Who you are here, and what you may do.',
    role: null,
    answer: sessionAnswer,
    handle: async ({ caller, deps }) => told(caller, deps),
  }),
  route({
    method: 'post',
    path: '/session',
    id: 'beginSession',
    summary: 'A cookie for a token, for browsers: HttpOnly, SameSite=Strict, for 12 hours.',
    role: null,
    signsIn: true,
    body: z.strictObject({ token: z.string().min(1).max(256) }),
    answer: sessionAnswer,
    faults: [401],
    async handle({ body, deps, header }) {
      const found = findToken(deps.tokens.records(), body.token.trim());
      if (found === null) throw unauthorized('The token is not one that counts here.');
      const nowMs = deps.clock.nowMs();
      const cookie = deps.sessions.begin(found, nowMs);
      const { name, role } = found;
      const secure = header('origin')?.startsWith('https:') === true;
      deps.log.info({ event: 'session', name, role }, `${name} began a session.`);
      return {
        answer: told({ name, role, by: 'cookie', expiresMs: nowMs + SESSION_MS }, deps),
        headers: { 'set-cookie': cookieHeader(cookie, SESSION_MS / 1000, secure) },
      };
    },
  }),
  route({
    method: 'delete',
    path: '/session',
    id: 'endSession',
    summary: 'Ends the session of the cookie.',
    role: null,
    answer: sessionAnswer,
    async handle({ deps, header }) {
      const cookie = cookieOf(header('cookie'));
      if (cookie !== null) deps.sessions.end(cookie);
      return {
        answer: told(NOBODY, deps),
        headers: { 'set-cookie': cookieHeader('', 0, false) },
      };
    },
  }),
];
