/** Who asks, and whether they may: host, token or cookie, role, and that no page of another origin sent it. Stage: api. */
import type { HostRule } from './hosts.js';
import { isOwnOrigin } from './hosts.js';
import { ApiError } from './problem.js';
import { ANYBODY, type Caller, mayDo, NOBODY } from './roles.js';
import type { ApiDeps, Route } from './route.js';
import { findToken } from './tokens.js';

export const COOKIE = 'flyball_session';
/** What no form and no link can send. */
export const CSRF_HEADER = 'x-flyball-request';

export interface Asked {
  host: string | undefined;
  origin: string | undefined;
  authorization: string | undefined;
  cookie: string | undefined;
  csrf: string | undefined;
}

/** A name that is not this server's came by DNS rebinding, or by a proxy that nobody told us of. */
export function checkHost(rule: HostRule, host: string | undefined): void {
  if (rule.allows(host)) return;
  const shown = JSON.stringify((host ?? '').slice(0, 100));
  throw new ApiError(
    421,
    'FLYBALL_E_API_HOST',
    `The host ${shown} is not one of this daemon's. Set FLYBALL_HTTP_HOSTS to the names it is reached by.`,
  );
}

/** What a browser says of who asks (`Sec-Fetch-…`); others say nothing. */
export interface Fetched {
  site: string | undefined;
  mode: string | undefined;
  dest: string | undefined;
}

/**
 * A page of another origin reads no answer, but its questions would use up what this machine may ask, and hold streams;
 * one of another port of this machine is of the same site. Who follows a link may look, but no frame of a page.
 */
export function checkSite({ site, mode, dest }: Fetched): void {
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  if (mode === 'navigate' && dest === 'document') return;
  throw new ApiError(
    403,
    'FLYBALL_E_API_ORIGIN',
    'A page of another origin may not ask this of the daemon; only its own pages may.',
  );
}

/** A wrong token is an error also where none is needed: whoever gives one means to be known. */
export function callerOf(asked: Asked, rule: HostRule, deps: ApiDeps): Caller {
  const records = deps.tokens.records();
  if (asked.authorization !== undefined) {
    const token = /^Bearer +(\S+)$/i.exec(asked.authorization)?.[1];
    const found = token === undefined ? null : findToken(records, token);
    if (found === null) throw unauthorized('The token is not one that counts here.');
    const { name, role } = found;
    return { name, role, by: 'token', expiresMs: null };
  }
  const cookie = cookieOf(asked.cookie);
  const session = cookie === null ? null : deps.sessions.find(cookie, records, deps.clock.nowMs());
  return session ?? (rule.loopback ? ANYBODY : NOBODY);
}

export function checkRole(caller: Caller, route: Route, rule: HostRule): void {
  const { role } = route;
  if (role === null || mayDo(caller.role, role)) return;
  if (caller.name === null) {
    const local = rule.loopback
      ? ' The one of this machine lies in its data folder, in `token`.'
      : '';
    throw unauthorized(`This needs a token of the role ${role} (Authorization: Bearer …).${local}`);
  }
  throw new ApiError(
    403,
    'FLYBALL_E_API_ROLE',
    `${caller.name} is ${caller.role}; this needs the role ${role}.`,
  );
}

/** Of what changes something: a page of another origin must not be able to have it done by this browser. */
export function checkOrigin(asked: Asked, caller: Caller, route: Route): void {
  const refuse = (why: string) => {
    throw new ApiError(403, 'FLYBALL_E_API_ORIGIN', why);
  };
  if (asked.origin !== undefined && !isOwnOrigin(asked.origin, asked.host)) {
    const shown = JSON.stringify(asked.origin.slice(0, 100));
    refuse(`The page of origin ${shown} may not ask this of the daemon; only its own pages may.`);
  }
  if (caller.by !== 'cookie' && !route.signsIn) return;
  if (asked.csrf !== '1') refuse(`Send the header ${CSRF_HEADER}: 1.`);
  if (asked.origin === undefined && caller.by === 'cookie') {
    refuse('A change by cookie needs the header Origin, as browsers send it.');
  }
}

export function cookieOf(header: string | undefined): string | null {
  for (const part of (header ?? '').split(';')) {
    const [name, value = ''] = part.trim().split('=');
    if (name === COOKIE && /^[A-Za-z0-9_-]{43}$/.test(value)) return value;
  }
  return null;
}

/** `secure`: the page came by TLS. */
export function cookieHeader(value: string, maxAgeS: number, secure: boolean): string {
  const end = secure ? '; Secure' : '';
  return `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${end}`;
}

export function unauthorized(message: string): ApiError {
  return new ApiError(401, 'FLYBALL_E_API_TOKEN', message, {
    headers: { 'www-authenticate': 'Bearer realm="flyball"' },
  });
}
