/** Which names a browser may know this server by: a page of another name must not reach it through DNS. Pure. Stage: api. */
import { isIP } from 'node:net';

export interface HostRule {
  /** Nobody but this machine reaches it. */
  loopback: boolean;
  allows(host: string | undefined): boolean;
}

/**
 * On loopback: localhost and the loopback addresses. Else: any address as such, since no DNS answers for it, and the
 * name it listens on. In both: the names given (`flyball.example.com`, with a port or without).
 */
export function hostRule(boundTo: string, given: readonly string[]): HostRule {
  const loopback = isLoopback(boundTo);
  const names = new Set([...given, boundTo, 'localhost'].map((name) => name.toLowerCase()));
  return {
    loopback,
    allows(host) {
      if (host === undefined) return false;
      const lower = host.toLowerCase();
      const name = nameOf(lower);
      if (name === null) return false;
      if (names.has(lower) || names.has(name)) return true;
      return loopback ? isLoopback(name) : isIP(name) !== 0;
    },
  };
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Without port and brackets; null: no host and port. */
function nameOf(host: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/.exec(host);
  return match === null ? null : (match[1] ?? match[2] ?? null);
}

/** Is this page's origin the host it asks? By either scheme: a proxy may end TLS. */
export function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const match = /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase());
  return match !== null && host !== undefined && match[1] === host.toLowerCase();
}
