/** Proof of the audit log: every hash, link and revision, read oldest to newest in flat memory. Stage: actuate. */
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { type RedisClient, readParams } from './actuator.js';
import { createChain } from './chain.js';
import type { Anchor, Fault, VerifyReport } from './chain-report.js';

export interface VerifyOptions {
  /** A head noted elsewhere (`hash` of an entry): the chain must hold it, and all before it is then proven. */
  anchor?: string;
  /** The same, of which more is known. */
  anchors?: readonly Anchor[];
  /** Entries read at once. Default 500. */
  pageSize?: number;
}

/** Checks the whole stream against its own hashes and against the params in force. */
export async function verifyAudit(
  redis: RedisClient,
  address: LimiterAddress,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const { pageSize = 500, anchor, anchors = [] } = options;
  const key = limiterKeys(address).audit;
  // Read before the stream: a change written meanwhile must then show up in the stream, never the reverse.
  const params = await readParams(redis, address).then(
    (read) => read.params,
    (error: Error) => error,
  );
  const given = anchor === undefined ? [] : [{ hash: anchor, name: 'the anchor' }];
  const chain = createChain(address.name, [...given, ...anchors]);
  const type = await redis.type(key);
  if (type !== 'stream' && type !== 'none') {
    return chain.report(atTheEnd(`the log is gone: its key holds a ${type}`));
  }
  let from = '-';
  for (;;) {
    const page = await redis.xrange(key, from, '+', 'COUNT', pageSize);
    for (const [id, fields] of page) {
      const fault = chain.add(id, fields);
      if (fault !== null) return chain.report(fault);
    }
    const last = page.at(-1);
    if (page.length < pageSize || last === undefined) break;
    from = `(${last[0]}`;
  }
  if (params instanceof Error) return chain.report(atTheEnd(params.message));
  return chain.report(chain.end(params));
}

function atTheEnd(what: string): Fault {
  return { id: null, revision: null, what };
}
