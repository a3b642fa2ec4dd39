/** Which proxies are believed about the client's address, and the address that follows from it. Stage: enforce. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';
import { canonicalAddress, clientAddress, IPV6_PREFIX } from './client-address.js';
import { lastHop, type ProxyHeader } from './forwarded.js';

/**
 * `false`: nobody, the socket's address counts. A number: that many proxies stand before this service, each adding the
 * address it was called from. A list: addresses and networks of proxies (`'10.0.0.0/8'`); `'loopback'`: this machine.
 */
export type TrustProxy = false | number | 'loopback' | readonly string[];

export interface AddressOptions {
  /** Default false. */
  trustProxy?: TrustProxy;
  /** The one header that your proxies write; the other, which a client may send through them, is never read. */
  proxyHeader?: ProxyHeader;
  /** How many bits of an IPv6 address name a client, 48 … 128. Default 64. */
  ipv6Prefix?: number;
}

export interface AddressFinder {
  readonly header: ProxyHeader;
  readonly trusts: boolean;
  /** `forwarded`: the header's value. */
  find(peer: string | undefined, forwarded: string | undefined): string;
}

const LOOPBACK = ['127.0.0.0/8', '::1'];
const MAX_HOPS = 32;

export function createAddressFinder(options: AddressOptions = {}): AddressFinder {
  const { trustProxy = false, proxyHeader = 'x-forwarded-for', ipv6Prefix = IPV6_PREFIX } = options;
  if (proxyHeader !== 'x-forwarded-for' && proxyHeader !== 'forwarded') {
    throw wrong('proxyHeader', proxyHeader, "'x-forwarded-for' or 'forwarded'");
  }
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 48 || ipv6Prefix > 128) {
    throw wrong('ipv6Prefix', ipv6Prefix, 'a whole number of bits from 48 to 128');
  }
  const isTrusted = trustOf(trustProxy);

  /** Outwards for as long as who speaks is trusted; what is no address ends the walk at the one that sent it. */
  function find(peer: string | undefined, forwarded: string | undefined): string {
    let known = peer;
    let end = forwarded?.length ?? -1;
    for (let hop = 0; hop < MAX_HOPS && end >= 0 && isTrusted!(known, hop); hop++) {
      const { address, rest } = lastHop(proxyHeader, forwarded!, end);
      if (address === null) break;
      known = address;
      end = rest;
    }
    return clientAddress(known, ipv6Prefix);
  }

  return {
    header: proxyHeader,
    trusts: isTrusted !== null,
    find: isTrusted === null ? (peer) => clientAddress(peer, ipv6Prefix) : find,
  };
}

type IsTrusted = (address: string | undefined, hop: number) => boolean;

function trustOf(trust: unknown): IsTrusted | null {
  if (trust === false) return null;
  if (typeof trust === 'number' && Number.isInteger(trust) && trust >= 0 && trust <= MAX_HOPS) {
    return trust === 0 ? null : (_address, hop) => hop < trust;
  }
  if (trust === 'loopback') return createNetworks('trustProxy', LOOPBACK);
  if (Array.isArray(trust)) return createNetworks('trustProxy', trust);
  const why = trust === true ? ' True would believe what any client writes.' : '';
  throw wrong(
    'trustProxy',
    trust,
    `false, the number of proxies before this service (0 … ${MAX_HOPS}), 'loopback', or a list of networks like ['10.0.0.0/8']`,
    why,
  );
}

/** Is an address within one of these? `field` is for the message. */
export function createNetworks(
  field: string,
  list: readonly unknown[],
): (address: string | undefined) => boolean {
  const networks = new BlockList();
  for (const item of list) {
    if (item === 'loopback') for (const own of LOOPBACK) add(networks, field, own);
    else add(networks, field, item);
  }
  return (address) => {
    const plain = address === undefined ? null : canonicalAddress(address, 128);
    if (plain === null) return false;
    return networks.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
  };
}

function add(networks: BlockList, field: string, item: unknown): void {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(String(item)) ?? [];
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  const width = family === 'ipv4' ? 32 : 128;
  const prefix = bits === undefined ? width : Number(bits);
  // IPv4 in IPv6 is compared as IPv4: as a network of IPv6 it would never match.
  const mapped = family === 'ipv6' && isIPv6(address) && isIPv4(canonicalAddress(address) ?? '');
  if (!(isIPv4(address) || isIPv6(address)) || mapped || prefix > width || prefix < 1) {
    throw wrong(
      field,
      item,
      "an address or a network, '10.0.0.7', '10.0.0.0/8', '2001:db8::/32' (a /0 would be everybody), or 'loopback'",
    );
  }
  networks.addSubnet(address, prefix, family);
}

function wrong(field: string, value: unknown, allowed: string, why = ''): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `${field} is ${show(value)}. Use ${allowed}.${why}`,
  );
}
