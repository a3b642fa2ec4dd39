/** From a policy file to the policy in force: params are created or changed, a hold stays, the entry says so. Stage: actuate. */

import type { LoadedPolicy } from '../policy/load.js';
import { parseByPerson } from '../redis/by-person.js';
import type { ActuateReply } from '../redis/calls.js';
import { isTried, parseCanary } from '../redis/canary.js';
import { effective, settled } from '../redis/effective.js';
import { fleetKeys, type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { ParamChange, Params } from '../redis/params.js';
import { keepSource } from '../redis/sources.js';
import { inForceAt, readOverrides } from '../redis/subject-override.js';
import { entryValues, type RedisClient, readParamsAnyhow, write } from './actuator.js';
import type { AdoptOptions, AdoptOutcome } from './adopt-types.js';
import { adoptedParams, createdParams } from './adopted-params.js';
import { readEntries } from './audit.js';
import { endedSentence, retireCanary } from './canary-end.js';
import type { EntryValues } from './entry.js';

export type { LoadedPolicy } from '../policy/load.js';
export type { AdoptOptions, AdoptOutcome } from './adopt-types.js';

/** Where the limiter of a policy lives. */
export function policyAddress(policy: LoadedPolicy['policy'], prefix?: string): LimiterAddress {
  const { name, group } = policy.limiter;
  return { name, group, prefix };
}

/**
 * Makes `loaded` the adopted policy. Refuses a changed group: that would be a new limiter. Nothing is written
 * when the same policy is adopted already and its params are there.
 */
export async function adopt(
  redis: RedisClient,
  loaded: LoadedPolicy,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const address = policyAddress(loaded.policy, options.prefix);
  const group = address.group ?? '';
  const registered = await redis.hget(fleetKeys(options.prefix).limiters, address.name);
  if (registered !== null && registered !== group) {
    return {
      status: 'refused',
      reason: 'group',
      sentence: `${loaded.file}: limiter.group is ${named(group)}, but ${address.name} lives in ${named(registered)}. A limiter cannot change its group: give it a new name, or keep the group.`,
    };
  }
  const { params, nowUs, unreadable } = await readParamsAnyhow(redis, address);
  const moved = options.moved?.(params, nowUs / 1000) ?? null;
  if (moved !== null) return { status: 'refused', reason: 'moved', sentence: moved };
  const outcome =
    params === null
      ? await create(redis, loaded, address, nowUs, options, unreadable?.message)
      : await change(redis, loaded, address, params, nowUs, options);
  if (outcome.status === 'refused') return outcome;
  if (registered === null) {
    await redis.hset(fleetKeys(options.prefix).limiters, address.name, group);
  }
  if (outcome.status === 'changed' && params?.canary) await retireCanary(redis, address);
  await keepAdopted(redis, loaded, options, outcome.status === 'unchanged' ? params! : outcome);
  return outcome;
}

/** Its source, for `flyball policy`. It stands without: who adopts it the next time, or starts with it, keeps it. */
export async function keepAdopted(
  redis: RedisClient,
  loaded: LoadedPolicy,
  { actor, prefix }: AdoptOptions,
  { epoch, revision }: Pick<Params, 'epoch' | 'revision'>,
): Promise<void> {
  const text = loaded.text === undefined ? null : withoutLogins(loaded.text);
  const meta = { by: actor.name, kind: actor.kind, file: loaded.file, epoch, revision, text };
  const keys = limiterKeys(policyAddress(loaded.policy, prefix));
  await keepSource(redis, keys, loaded.hash, meta).catch(() => {});
}

/** A policy with a login in an address is refused; of a comment, or a helper's text, nobody has looked at it. */
function withoutLogins(text: string): string {
  return text.replace(/\/\/[^\s'"`/@]*@/g, '//***@');
}

async function create(
  redis: RedisClient,
  loaded: LoadedPolicy,
  address: LimiterAddress,
  nowUs: number,
  options: AdoptOptions,
  unreadable: string | undefined,
): Promise<AdoptOutcome> {
  const {
    change: fresh,
    restored,
    sentence,
  } = createdParams(loaded, options.last ?? null, nowUs / 1000, options.begins);
  const change = { ...fresh, ...(await saidRules(redis, address, nowUs)) };
  const epoch = Math.max(
    await nextEpoch(redis, address),
    (options.last?.epoch ?? 0) + 1,
    Math.floor(nowUs / 1000),
  );
  const reply = await write(
    redis,
    address,
    {
      authority: options.authority ?? { kind: 'person' },
      expected: { epoch, revision: 1 },
      create: true,
      change,
      cause: 'policy',
      refloor: loaded.policy.limiter.coldStart,
      actor: options.actor,
      reason: restored ? 'params_restored' : 'params_created',
      sentence: withWhy(sentence, options),
      before: null,
      after: values(change, null),
      policyHash: loaded.hash,
      policy: { hash: loaded.hash, json: loaded.json },
      detail: {
        file: loaded.file,
        ...(unreadable === undefined ? {} : { unreadable }),
        ...(options.why === undefined ? {} : { why: options.why }),
      },
    },
    options,
  );
  return answer(reply, restored ? 'restored' : 'created', sentence);
}

async function change(
  redis: RedisClient,
  loaded: LoadedPolicy,
  address: LimiterAddress,
  params: Params,
  nowUs: number,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  // A daemon has the file that a person adopted in place of another: from then on files say it again.
  const agrees = params.policyHash === loaded.hash && agreesNow(params, options);
  if (params.policyHash === loaded.hash && !agrees && !options.again) {
    const keys = limiterKeys(address);
    const stored = await redis.mget(keys.policy, keys.policyVersion(loaded.hash));
    if (stored.every((text) => text === loaded.json)) return { status: 'unchanged' };
  }
  const { actor, passed } = options;
  const person = actor.kind === 'person' ? actor.name : passed?.by;
  const adopted = adoptedParams(loaded, params, nowUs / 1000, person);
  const own = agrees ? agreesSentence(loaded) : adopted.sentence;
  const tried = parseCanary(params.canary);
  const ends = isTried(tried, nowUs / 1000) ? endedSentence(tried) : '';
  const sentence = passed === undefined ? `${own}${ends}` : `${passed.sentence} ${own}`;
  Object.assign(adopted.change, await saidRules(redis, address, nowUs));
  const now = { ...params, ...settled(params, effective(params, nowUs / 1000)) };
  const reply = await write(
    redis,
    address,
    {
      authority: options.authority ?? { kind: 'person' },
      expected: { epoch: params.epoch, revision: params.revision },
      change: adopted.change,
      cause: 'policy',
      ...(adopted.goesLower ? { refloor: 'empty' as const } : {}),
      actor: options.actor,
      reason: passed === undefined ? 'policy_adopted' : 'canary_passed',
      sentence: withWhy(sentence, options),
      before: entryValues(now),
      after: values(adopted.change, now),
      policyHash: loaded.hash,
      policy: { hash: loaded.hash, json: loaded.json },
      detail: {
        file: loaded.file,
        replaced: params.policyHash,
        ...passed?.detail,
        ...(options.why === undefined ? {} : { why: options.why }),
      },
    },
    options,
  );
  return answer(reply, 'changed', sentence);
}

function agreesNow(params: Params, { actor, last }: AdoptOptions): boolean {
  const byFile = actor.kind === 'autopilot' && last === undefined;
  return byFile && parseByPerson(params.byPerson).policy !== undefined;
}

function agreesSentence({ file, hash }: LoadedPolicy): string {
  return `${file} says what a person adopted: policy ${hash.slice(0, 12)} is the file's again.`;
}

function withWhy(sentence: string, { why }: AdoptOptions): string {
  return why === undefined ? sentence : `${sentence} Reason: ${why}`;
}

/**
 * What a person said of single subjects outlives the policy. Read after the params: an override that comes later moves
 * their revision, and this write is refused.
 */
async function saidRules(
  redis: RedisClient,
  address: LimiterAddress,
  nowUs: number,
): Promise<Pick<ParamChange, 'subjectRules'>> {
  const overrides = await readOverrides(redis, limiterKeys(address));
  const holds = [...overrides.values()].some((each) => inForceAt(each, nowUs / 1000));
  return holds ? { subjectRules: 1 } : {};
}

/** Above every epoch that the audit log still knows. */
async function nextEpoch(redis: RedisClient, address: LimiterAddress): Promise<number> {
  const { entries } = await readEntries(redis, address, { limit: 1 });
  return (entries[0]?.epoch ?? 0) + 1;
}

function answer(
  reply: ActuateReply,
  status: 'created' | 'restored' | 'changed',
  sentence: string,
): AdoptOutcome {
  if (reply.status === 'ok') {
    return { status, epoch: reply.epoch, revision: reply.revision, sentence };
  }
  return {
    status: 'refused',
    reason: 'write',
    sentence: `the policy was not adopted: ${reply.reason} (${reply.detail})`,
    reply,
  };
}

function values(change: Partial<EntryValues>, params: Params | null): EntryValues {
  return {
    mode: change.mode ?? params?.mode ?? 'recommend',
    state: change.state ?? params?.state ?? 'closed',
    rate: change.rate ?? params?.rate ?? 0,
    capacity: change.capacity ?? params?.capacity ?? 0,
    inFlightMax: change.inFlightMax ?? params?.inFlightMax ?? 0,
  };
}

function named(group: string): string {
  return group === '' ? 'no group' : `group ${JSON.stringify(group)}`;
}
