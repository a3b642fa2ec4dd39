/** One GET that trusts nobody: bounded in time, bytes and redirects, and its secrets stay with their origin. Stage: sense. */
import { readFileSync } from 'node:fs';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { get as httpsGet } from 'node:https';
import { type AgentLease, leaseAgent } from './http-agents.js';
import type { MissingReason } from './readings.js';

/** Where to ask, with all references to the environment resolved. */
export interface HttpTarget {
  url: URL;
  headers: Record<string, string>;
  /** Paths of PEM files. */
  tls: { ca?: string; cert?: string; key?: string };
}

export interface HttpAnswer {
  status: number;
  contentType: string;
  text: string;
  /** Wall ms of the server's own clock when it answered, from its `Date` header; null without one. */
  serverMs: number | null;
}

/** Why there is no usable answer, in words that say how to mend it. */
export class HttpFault extends Error {
  constructor(
    readonly reason: MissingReason,
    message: string,
    readonly status?: number,
  ) {
    super(message);
  }
}

export interface HttpClient {
  /** Rejects with `HttpFault`, or with the error of the socket. Any status comes back but those that say: elsewhere. */
  get(url: URL, over: AbortSignal): Promise<HttpAnswer>;
  close(): void;
}

const LARGEST_BYTES = 10_000_000;
const MOST_REDIRECTS = 3;

/**
 * `reuse`: one connection is kept from look to look. A page that several workers may answer is asked anew each time:
 * a connection that is kept would always reach the same one, and hide the others.
 */
export function createHttpClient(
  target: HttpTarget,
  options: { accept: string; reuse: boolean },
): HttpClient {
  const { headers, tls } = target;
  const secure = target.url.protocol === 'https:';
  let lease: AgentLease | undefined;

  const files = (): Record<string, Buffer> | null =>
    secure
      ? Object.fromEntries(Object.entries(tls).map(([name, path]) => [name, pem(name, path)]))
      : null;
  const kept = () => leaseAgent(JSON.stringify([secure, tls]), files);

  async function once(url: URL, over: AbortSignal): Promise<IncomingMessage> {
    if (options.reuse) lease ??= kept();
    const by = lease === undefined ? { agent: false as const, ...files() } : { agent: lease.agent };
    return new Promise((ok, no) => {
      const request = (secure ? httpsGet : httpGet)(
        url,
        {
          ...by,
          signal: over,
          headers: {
            ...headers,
            accept: options.accept,
            'accept-encoding': 'identity',
            'user-agent': 'flyball-daemon',
          },
        },
        ok,
      );
      request.on('error', no);
    });
  }

  async function follow(from: URL, over: AbortSignal): Promise<IncomingMessage> {
    let url = from;
    for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
      const response = await once(url, over);
      const { statusCode = 0, headers: said } = response;
      if (statusCode < 300 || statusCode > 399 || said.location === undefined) return response;
      response.destroy();
      const next = URL.canParse(said.location, url.href) ? new URL(said.location, url) : null;
      if (next?.origin !== url.origin) {
        const where = next === null ? 'an address that is none' : next.origin;
        throw new HttpFault(
          'error',
          `it redirects to ${where}, which is not followed, for the credentials are not for it. Give the address itself.`,
        );
      }
      url = next;
    }
    throw new HttpFault('error', `it redirects more than ${MOST_REDIRECTS} times`);
  }

  return {
    async get(url, over) {
      try {
        const response = await follow(url, over);
        const bytes = await bodyOf(response);
        const { statusCode = 0, headers: said } = response;
        const dated = Date.parse(said.date ?? '');
        return {
          status: statusCode,
          contentType: said['content-type'] ?? '',
          text: decoded(bytes),
          serverMs: Number.isFinite(dated) ? dated : null,
        };
      } catch (error) {
        if (isOfCertificates(error)) {
          // One may have been renewed: the next look reads the files again. What is under way beside goes on.
          lease?.retire();
          lease = undefined;
        }
        throw error instanceof HttpFault ? error : explained(error);
      }
    },
    close() {
      lease?.release();
      lease = undefined;
    },
  };
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const encoding = response.headers['content-encoding'] ?? 'identity';
  const announced = Number(response.headers['content-length'] ?? 0);
  const parts: Buffer[] = [];
  let size = 0;
  try {
    if (encoding !== 'identity') {
      throw new HttpFault('error', `it answers in ${encoding}, though asked for plain text`);
    }
    if (announced > LARGEST_BYTES) throw tooLarge();
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > LARGEST_BYTES) throw tooLarge();
      parts.push(part);
    }
  } finally {
    response.destroy();
  }
  return Buffer.concat(parts);
}

function tooLarge(): HttpFault {
  return new HttpFault('error', 'its answer is larger than 10 MB. Ask for less.');
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpFault('error', 'its answer is not UTF-8');
  }
}

function pem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new HttpFault('error', `tls.${name}: ${path} cannot be read (${code})`);
  }
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ERR_TLS|ALTNAME/;

function isOfCertificates(error: unknown): boolean {
  return CERTIFICATE.test(String((error as { code?: unknown }).code ?? ''));
}

function explained(error: unknown): unknown {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  if (isOfCertificates(error)) {
    return new HttpFault(
      'error',
      `its certificate is not accepted (${code}). If it is signed by your own authority, give tls: { ca: '/path/to/ca.pem' }.`,
    );
  }
  if (code === 'EPROTO' || /wrong version number/.test(message)) {
    return new HttpFault('error', 'it does not speak TLS. Is it http:// and not https://?');
  }
  if (code.startsWith('HPE_')) return new HttpFault('error', `it does not speak HTTP (${code})`);
  return error;
}
