/** The versions of a limiter's policy that are kept: which is adopted, who adopted each, and what differs between two. Stage: cli, api. */
import type { RedisClient } from '../actuate/actuator.js';
import { readParamsAnyhow } from '../actuate/actuator.js';
import type { LoadedPolicy } from '../actuate/adopt.js';
import { readAdopted } from '../actuate/adopted-policy.js';
import { FlyballError } from '../errors.js';
import { type FieldChange, policyDiff } from '../policy/plan.js';
import { parseByPerson } from '../redis/by-person.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { readSources } from '../redis/sources.js';

export interface PolicyVersion {
  hash: string;
  atMs: number;
  by: string;
  kind: 'autopilot' | 'person';
  file: string;
  epoch: number;
  revision: number;
  /** It is in force. */
  adopted: boolean;
  /** A person adopted another in its place: no daemon adopts it again before its file changes. */
  replaced: boolean;
  /** The file's text, where it is kept. */
  text: string | null;
}

export interface PolicyHistory {
  limiter: string;
  /** Hash; null: the limiter has no params. */
  adopted: string | null;
  /** Newest first, at most 20. */
  versions: PolicyVersion[];
}

export async function policyHistory(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<PolicyHistory> {
  const { params } = await readParamsAnyhow(redis, address);
  const adopted = params?.policyHash ?? null;
  const over = parseByPerson(params?.byPerson ?? '').policy?.over;
  const sources = await readSources(redis, limiterKeys(address));
  const versions = sources.map((source) => {
    return { ...source, adopted: source.hash === adopted, replaced: source.hash === over };
  });
  return { limiter: address.name, adopted, versions };
}

/** The version whose hash begins so. */
export async function findVersion(
  redis: RedisClient,
  address: LimiterAddress,
  history: PolicyHistory,
  start: string,
): Promise<LoadedPolicy> {
  const { limiter, adopted, versions } = history;
  const hashes = new Set([
    ...versions.map(({ hash }) => hash),
    ...(adopted === null ? [] : [adopted]),
  ]);
  const found = [...hashes].filter((hash) => hash.startsWith(start.toLowerCase()));
  const [hash] = found;
  if (hash === undefined || found.length > 1) {
    const kept = versions.map((version) => version.hash.slice(0, 12)).join(', ') || 'none';
    const what = found.length > 1 ? 'begins the hash of several versions' : 'is no version';
    throw new FlyballError(
      'FLYBALL_E_VERSION_UNKNOWN',
      `${JSON.stringify(start)} ${what} of the policy of ${limiter} that is kept. Kept: ${kept}. \`flyball policy history ${limiter}\` shows them.`,
    );
  }
  const loaded = await readAdopted(redis, address, hash);
  if (loaded === null) {
    throw new FlyballError(
      'FLYBALL_E_VERSION_UNKNOWN',
      `the policy ${hash.slice(0, 12)} of ${limiter} is not stored whole any more, so it cannot be used.`,
    );
  }
  const version = versions.find((each) => each.hash === hash);
  const { file = loaded.file, text = null } = version ?? {};
  return { ...loaded, file, ...(text !== null && { text }) };
}

/** The version that a person replaced: what the files say, as far as they have not changed since. */
export async function replacedVersion(
  redis: RedisClient,
  address: LimiterAddress,
  history: PolicyHistory,
): Promise<LoadedPolicy | null> {
  const { params } = await readParamsAnyhow(redis, address);
  const over = parseByPerson(params?.byPerson ?? '').policy?.over;
  return over === undefined ? null : findVersion(redis, address, history, over);
}

export interface PolicyDiff {
  limiter: string;
  from: string;
  to: string;
  fields: FieldChange[];
}

/** From one version to another; `to` of null is the adopted one. */
export async function policyVersionDiff(
  redis: RedisClient,
  address: LimiterAddress,
  start: string,
  to: string | null,
): Promise<PolicyDiff> {
  const history = await policyHistory(redis, address);
  const before = await findVersion(redis, address, history, start);
  const after = await findVersion(redis, address, history, to ?? history.adopted ?? start);
  const fields = policyDiff(before.policy, after.policy);
  return { limiter: history.limiter, from: before.hash, to: after.hash, fields };
}
