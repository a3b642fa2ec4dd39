/** What middleware knows of a request by itself, whatever the framework; read when asked for. Stage: enforce. */
import type { IncomingMessage } from 'node:http';
import { type AddressFinder, type AddressOptions, createAddressFinder } from '../proxies.js';
import type { KnownAttributes } from '../subject-template.js';

/** How a framework tells of its requests. */
export interface Adapter<Req> {
  method(req: Req): string;
  /** Path and query as the client sent them. */
  url(req: Req): string;
  /** `name` in lower case; several lines joined by a comma. */
  header(req: Req, name: string): string | undefined;
  /** The address of the other end of the connection. */
  peer(req: Req): string | undefined;
  /** The pattern of the route, as far as it is known before the handler runs. */
  route(req: Req): string | null;
}

/** What a function that chooses the limiter is given. */
export interface RequestFacts extends KnownAttributes {
  readonly method: string;
  /** Without the query. A client chooses it freely: for matching, never for a subject. */
  readonly path: string;
  readonly route: string | null;
  header(name: string): string | undefined;
}

/** Requests of one address by which it is held for a proxy's: its header changed so often meanwhile. */
const ONE_ADDRESS_AFTER = 100;

/** Finds client addresses, and notices once what a set-up gets wrong about them. */
export class AddressReader {
  readonly #finder: AddressFinder;
  #told = false;
  #last = '';
  #lastHeader: string | undefined;
  #changes = 0;
  /** To be told to the operator, once. */
  warning: { code: string; message: string } | null = null;

  constructor(options: AddressOptions) {
    this.#finder = createAddressFinder(options);
  }

  read(peer: string | undefined, header: (name: string) => string | undefined): string {
    if (this.#finder.trusts) {
      const forwarded = header(this.#finder.header);
      const address = this.#finder.find(peer, forwarded);
      if (!this.#told) this.#watch(address, forwarded);
      return address;
    }
    if (!this.#told) {
      const found = ['x-forwarded-for', 'forwarded'].find((name) => header(name) !== undefined);
      if (found !== undefined) this.#tell('FLYBALL_W_PROXY_NOT_TRUSTED', notTrusted(found));
    }
    return this.#finder.find(peer, undefined);
  }

  #watch(address: string, forwarded: string | undefined): void {
    if (address !== this.#last) {
      this.#last = address;
      this.#changes = 0;
    } else if (forwarded !== this.#lastHeader) this.#changes += 1;
    this.#lastHeader = forwarded;
    if (this.#changes >= ONE_ADDRESS_AFTER) {
      this.#tell('FLYBALL_W_ONE_ADDRESS', oneAddress(this.#finder.header, address));
    }
  }

  #tell(code: string, message: string): void {
    this.#told = true;
    this.warning = { code, message };
  }
}

function notTrusted(header: string): string {
  return `a request carries ${header}, which is not read: subjects by address use the socket's. If a proxy stands before this service, all its clients share one bucket: set trustProxy to its network or to the number of proxies.`;
}

function oneAddress(header: string, address: string): string {
  return `the last ${ONE_ADDRESS_AFTER} values of ${header} all led to ${address}, which looks like a proxy whose clients share one bucket. Does trustProxy name every proxy before this service?`;
}

/** Nothing is read from the request until it is needed: most limiters need nothing. */
export class Facts<Req> implements RequestFacts {
  readonly #adapter: Adapter<Req>;
  readonly #req: Req;
  readonly #addresses: AddressReader;
  readonly #named: ((req: Req) => string | undefined) | null;
  #ip: string | null = null;
  /** The route by which the limiter was found: alike in every service, whatever its framework. */
  matched: string | null = null;

  constructor(
    adapter: Adapter<Req>,
    req: Req,
    addresses: AddressReader,
    named: ((req: Req) => string | undefined) | null,
  ) {
    this.#adapter = adapter;
    this.#req = req;
    this.#addresses = addresses;
    this.#named = named;
  }

  get method(): string {
    return this.#adapter.method(this.#req);
  }

  get path(): string {
    return pathOf(this.#adapter.url(this.#req));
  }

  get route(): string | null {
    return this.#named?.(this.#req) ?? this.matched ?? this.#adapter.route(this.#req);
  }

  /** What is usual of it: the framework's own pattern, known once it has found the handler, tells more than a policy's. */
  get kind(): string | null {
    const route =
      this.#named?.(this.#req) ?? this.#adapter.route(this.#req) ?? this.matched ?? null;
    if (route === null) return null;
    const { method } = this;
    return route.startsWith(`${method} `) ? route : `${method} ${route}`;
  }

  get ip(): string {
    this.#ip ??= this.#addresses.read(this.#adapter.peer(this.#req), (name) => this.header(name));
    return this.#ip;
  }

  header(name: string): string | undefined {
    return this.#adapter.header(this.#req, name);
  }
}

export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** What every framework on `node:http` has. */
export function nodeAdapter<Req>(
  raw: (req: Req) => IncomingMessage,
  route: (req: Req) => string | null,
): Adapter<Req> {
  return {
    method: (req) => raw(req).method ?? '',
    url: (req) => raw(req).url ?? '',
    header(req, name) {
      const value = raw(req).headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    peer: (req) => raw(req).socket?.remoteAddress,
    route,
  };
}
