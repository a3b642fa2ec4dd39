/** An address as a subject: one text for all ways to write it, IPv6 grouped by its network. Stage: enforce. */
import { isIPv4, isIPv6 } from 'node:net';

/** One subscriber holds at least a /64: single addresses of it are no identity. */
export const IPV6_PREFIX = 64;

/**
 * IPv4 as it is; IPv4 in IPv6 as IPv4; IPv6 as its network (`2001:db8:1:2::/64`), at 128 whole. Zones are dropped.
 * Null for what is no address.
 */
export function canonicalAddress(text: string, ipv6Prefix = IPV6_PREFIX): string | null {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return null;
  const groups = groupsOf(text);
  return ipv4Of(groups) ?? networkOf(groups, ipv6Prefix);
}

/** The socket's address as a subject; `unknown` where it has none (a Unix socket, a client that has gone). */
export function clientAddress(remote: string | undefined, ipv6Prefix = IPV6_PREFIX): string {
  return (remote === undefined ? null : canonicalAddress(remote, ipv6Prefix)) ?? 'unknown';
}

/** An address with what proxies write round it, `[…]` and a port, taken off; null when it is none. */
export function bareAddress(text: string): string | null {
  if (isIPv4(text) || isIPv6(text)) return text;
  const [, inBrackets, beforePort] =
    /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(text) ?? [];
  if (inBrackets !== undefined) return isIPv6(inBrackets) ? inBrackets : null;
  return beforePort !== undefined && isIPv4(beforePort) ? beforePort : null;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const zone = address.indexOf('%');
  const [left = '', right] = (zone < 0 ? address : address.slice(0, zone)).split('::');
  const head = partsOf(left);
  if (right === undefined) return head;
  const tail = partsOf(right);
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function partsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return Number.parseInt(part, 16);
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/** `::ffff:a.b.c.d`, however it is written. */
function ipv4Of(groups: readonly number[]): string | null {
  const [, , , , , mark = 0, high = 0, low = 0] = groups;
  if (mark !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return null;
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

function networkOf(groups: readonly number[], prefix: number): string {
  const kept = Math.ceil(prefix / 16);
  const shown = groups.slice(0, kept);
  const spare = kept * 16 - prefix;
  shown[kept - 1] = (shown[kept - 1]! >> spare) << spare;
  const text = shown.map((group) => group.toString(16)).join(':');
  if (prefix === 128) return text;
  return kept === 8 ? `${text}/${prefix}` : `${text}::/${prefix}`;
}
