/** The client's address as a subject: the socket's, with IPv6 grouped by /64. Stage: enforce. */
import { isIPv6 } from 'node:net';

/**
 * IPv4 as it is; IPv4 in IPv6 as IPv4; IPv6 as its /64, since one subscriber holds at least that many
 * addresses. `X-Forwarded-For` is never read: behind a proxy, give the client's address as an attribute.
 */
export function clientAddress(remote: string | undefined): string {
  if (remote === undefined || remote === '') return 'unknown';
  const bare = remote.split('%')[0]!;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  if (mapped) return mapped[1]!;
  return isIPv6(bare) ? `${network64(bare)}::/64` : bare;
}

function network64(address: string): string {
  const [left = '', right] = address.split('::');
  const groups = left === '' ? [] : left.split(':');
  if (right !== undefined) {
    const tail = right === '' ? [] : right.split(':');
    while (groups.length + tail.length < 8) groups.push('0');
    groups.push(...tail);
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
