/** The address, credentials and certificates of an HTTP source, taken from the policy and the environment. Stage: sense. */

import { basicAuth, takeLogin } from '../login.js';
import type { Signal } from '../policy/schema.js';
import { isAway, isLate, textOf } from './guarded.js';
import { HttpFault, type HttpTarget } from './http-get.js';
import type { Missing } from './readings.js';
import { missing, resolved } from './source.js';

export type HttpSignal = Extract<Signal, { source: 'prometheus' | 'scrape' }>;

export interface Resolved {
  target: HttpTarget;
  /** What no detail and no log may show. */
  secrets: string[];
}

/** The target, or why there is none: a variable that is not set, an address in one that is no address. */
export function targetOf(signal: HttpSignal, env: NodeJS.ProcessEnv): Resolved | Missing {
  const secrets: string[] = [];
  let fault: Missing | undefined;
  const take = (value: string | { env: string }): string => {
    const found = resolved(value, env);
    if (typeof found !== 'string') {
      fault ??= found;
      return '';
    }
    return found;
  };
  const secret = (value: string | { env: string }): string => {
    const found = take(value);
    if (typeof value !== 'string') secrets.push(found);
    return found;
  };

  const address = take(signal.url);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(signal.headers ?? {})) headers[name] = secret(value);
  if (signal.token) headers.authorization = `Bearer ${secret(signal.token).trim()}`;
  if (signal.basic) {
    const { user, password } = signal.basic;
    headers.authorization = basicAuth(take(user), secret(password));
  }
  const tls = Object.fromEntries(
    Object.entries(signal.tls ?? {}).map(([name, path]) => [name, take(path)]),
  );
  if (fault) return fault;
  const url = httpUrl(address);
  if (url === null) {
    const from = typeof signal.url === 'string' ? 'url' : `the variable ${signal.url.env}`;
    return missing('error', `${from} holds no http:// or https:// address`);
  }
  // In the environment an address may carry them; in a policy it may not.
  const login = takeLogin(url);
  if (login !== null) {
    headers.authorization ??= login.authorization;
    secrets.push(...login.passwords);
  }
  const bad = Object.entries(headers).find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value));
  if (bad) return missing('error', `the value of header ${bad[0]} holds a line break or the like`);
  if (headers.authorization) secrets.push(headers.authorization.split(' ')[1]!);
  return { target: { url, headers, tls }, secrets };
}

function httpUrl(text: string): URL | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  return new URL(text);
}

/** Why an HTTP source gives no reading. */
export function missingForHttp(error: unknown): Missing {
  if (error instanceof HttpFault) return missing(error.reason, error.message);
  if (isLate(error)) return missing('timeout', textOf(error));
  return missing(isAway(error) ? 'unreachable' : 'error', textOf(error));
}

/** What a status other than 200 means, and how to mend it. */
export function statusFault(status: number, said = ''): HttpFault {
  const hints: Record<number, string> = {
    401: 'it wants other credentials: token, basic or headers',
    403: 'these credentials may not read it',
    404: 'nothing is at this address. Is its path right?',
    429: 'it is asked too often',
  };
  const hint = hints[status] ?? (status >= 500 ? 'it is in trouble itself' : 'it refuses');
  return new HttpFault('error', `${status}: ${hint}${said === '' ? '' : ` (${said})`}`, status);
}
