/** Every command of the program, and how the conformance tests call it. A new command needs a row. Stage: test. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { writeNote } from '../../src/actuate/actuator.js';
import { adopt } from '../../src/actuate/adopt.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { historyText } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from './cli-run.js';
import { madeUp } from './history.js';

export interface World {
  redis: Redis;
  env: NodeJS.ProcessEnv;
  folder: string;
}

interface Common {
  /** A wrong call, and what is said of it beside exit 64. */
  wrong: [args: string, says: RegExp];
  /** Options that it must have. */
  required?: string;
  /** What must stand before it is called. */
  given?(world: World): Promise<unknown>;
}

/** Changes what is in force: previews, asks, needs `--yes` without a terminal. */
export interface ChangeRow extends Common {
  kind: 'change';
  args: string | ((world: World) => string);
  /** Fields that its JSON has besides `schema`. */
  json: readonly string[];
}

/** Shows something, and writes nothing. */
export interface LookRow extends Common {
  kind: 'look';
  args: string | ((world: World) => string);
  json: readonly string[];
  /** Default 0. */
  code?: number;
  /** Prints the same with and without `--json`, or nothing to a terminal. */
  plain?: boolean;
}

/** Has tests of its own for what it does; only how it is called is looked at here. */
export interface ApartRow extends Common {
  kind: 'apart';
  why: string;
}

export type Row = ChangeRow | LookRow | ApartRow;

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
const ONE = ['limiter', 'verb', 'status', 'epoch', 'revision', 'before', 'after', 'sentence'];
const noLimiter: [string, RegExp] = ['chekcout --yes', /Did you mean checkout\?/];
const notSpan: [string, RegExp] = ['checkout --for 5 --yes', /"5" has no unit\. Write 30s/];

/** A policy as a daemon would have adopted it, in place of what was there. */
export async function adopted({ redis }: World, more: Partial<PolicyInput> = {}) {
  const policy = policySchema.parse(policyInput(more));
  const hash = policyHash(policy);
  const loaded = { file: 'x.ts', policy, hash, json: policyJson(policy) };
  const actor = { kind: 'autopilot' as const, name: 'd1' };
  await adopt(redis, loaded, { actor, leaseMs: 60_000, nowMs: Date.now() });
  return hash;
}

function policyInput(more: Partial<PolicyInput> = {}): PolicyInput {
  return {
    limiter: { ...checkout, rate: 100, capacity: 200, inFlightMax: 20 },
    bounds: {
      ...{ rate: { min: 10, max: 400 }, inFlight: { min: 2, max: 64 } },
      capacity: { min: 20, max: 1000 },
    },
    ...{ mode: 'auto', control: { law: 'step' } },
    ...more,
  };
}

function policyFile({ folder }: World, more: Partial<PolicyInput> = {}): string {
  const file = join(folder, 'checkout.mjs');
  writeFileSync(file, `export default ${JSON.stringify(policyInput(more))};`);
  return file;
}

async function days({ redis }: World): Promise<void> {
  const rows = madeUp({ days: 2 });
  const last = Math.floor(Date.now() / 60_000) - 1;
  const fields = rows.flatMap((row, i) => [String(last - (rows.length - 1 - i)), historyText(row)]);
  await redis.hset(keys.history, ...fields);
}

/** What the law would have done, as it is noted in mode recommend. */
async function recommended(world: World): Promise<void> {
  await adopted(world, { mode: 'recommend' });
  const { epoch, revision, policyHash: hash } = await mustRead(world.redis, checkout);
  const values = { mode: 'recommend', state: 'closed', capacity: 200, inFlightMax: 20 } as const;
  await writeNote(
    world.redis,
    checkout,
    {
      ...{ expected: { epoch, revision }, actor: { kind: 'autopilot', name: 'd1' } },
      ...{ reason: 'law_cut', sentence: 'Recommended, not applied: rate 100 → 80/s.' },
      ...{ before: { ...values, rate: 100 }, after: { ...values, rate: 80 } },
      ...{ policyHash: hash, law: 'step@2' },
    },
    { nowMs: Date.now() },
  );
}

const verb =
  (args: string) =>
  ({ env }: World) =>
    cli(args.split(' '), { env });

export const ROWS: Record<string, Row> = {
  rollback: {
    kind: 'change',
    args: 'checkout 1',
    json: [...ONE, 'hold'],
    wrong: ['checkout', /--last undoes/],
  },
  pin: {
    kind: 'change',
    args: 'checkout --rate 80',
    json: [...ONE, 'hold'],
    wrong: ['checkout --yes', /flyball freeze checkout/],
  },
  release: {
    kind: 'change',
    args: 'checkout',
    json: ONE,
    wrong: noLimiter,
    given: verb('pin checkout --rate 80 --yes'),
  },
  freeze: { kind: 'change', args: 'checkout', json: [...ONE, 'hold'], wrong: notSpan },
  thaw: {
    kind: 'change',
    args: 'checkout',
    json: ONE,
    wrong: noLimiter,
    given: verb('freeze checkout --yes'),
  },
  bounds: {
    kind: 'change',
    args: 'checkout --rate-max 600',
    json: [...ONE, 'hold', 'bounds'],
    wrong: ['checkout --yes', /flyball status checkout/],
    given: (world) => adopted(world),
  },
  rollout: {
    kind: 'change',
    args: 'checkout --percent 10',
    json: [...ONE, 'rollout'],
    wrong: ['checkout --yes', /flyball status checkout/],
  },
  trip: { kind: 'change', args: 'checkout', json: ONE, wrong: notSpan },
  reset: {
    kind: 'change',
    args: 'checkout',
    json: ONE,
    wrong: noLimiter,
    given: verb('trip checkout --hold --yes'),
  },
  subject: {
    kind: 'change',
    args: 'checkout user:42 --block',
    json: [...ONE, 'subject', 'was', 'is'],
    wrong: ['checkout user:42 --yes', /--block/],
  },
  tune: {
    ...{
      kind: 'change',
      args: 'checkout --apply',
      json: ONE,
      wrong: ['checkout --since 1h', /1d … 8d/],
    },
    given: async (world) => Promise.all([adopted(world), days(world)]),
  },
  promote: {
    ...{
      kind: 'change',
      args: 'checkout --to recommend',
      json: ['limiter'],
      wrong: ['checkout --yes', /flyball status checkout/],
    },
    given: adopted,
  },
  approve: {
    kind: 'change',
    args: 'checkout',
    json: ['limiter'],
    wrong: ['checkout x --yes', /is not a revision/],
    given: recommended,
  },
  apply: {
    kind: 'change',
    // A saved plan, so that the file is loaded once.
    args: ({ folder }) => join(folder, 'plan.json'),
    json: [],
    wrong: ['--no-such', /flyball apply --help/],
    given: async (world) => {
      await adopted(world);
      const file = policyFile(world, { owner: 'payments' });
      await cli(['plan', file, '--out', join(world.folder, 'plan.json')], world);
    },
  },
  'policy use': {
    kind: 'change',
    args: 'checkout --release',
    json: [],
    wrong: ['checkout nothash', /nothash/],
    given: async (world) => {
      const hash = await adopted(world);
      await adopted(world, { owner: 'payments' });
      await cli(['policy', 'use', 'checkout', hash.slice(0, 12), '--yes'], world);
    },
  },
  'policy canary': {
    kind: 'change',
    args: 'checkout --stop',
    json: ONE,
    wrong: ['checkout --yes', /flyball status checkout/],
    given: async (world) => {
      await adopted(world);
      const file = policyFile(world, {
        limiter: { ...checkout, rate: 90, capacity: 200, inFlightMax: 20 },
      });
      await cli(['apply', file, '--canary', '5%', '--yes'], world);
    },
  },

  status: {
    kind: 'look',
    args: 'checkout',
    json: ['limiters'],
    wrong: ['chekcout', /Did you mean checkout\?/],
  },
  signals: {
    kind: 'look',
    args: 'checkout',
    json: ['limiters'],
    wrong: ['chekcout', /Did you mean checkout\?/],
    given: adopted,
  },
  top: {
    kind: 'look',
    args: 'checkout',
    json: ['limiter', 'subjects'],
    wrong: ['chekcout', /Did you mean checkout\?/],
  },
  audit: {
    kind: 'look',
    args: 'checkout --entries',
    json: ['entries'],
    wrong: ['chekcout', /Did you mean checkout\?/],
  },
  'audit verify': {
    kind: 'look',
    args: 'checkout',
    json: ['limiters'],
    wrong: ['chekcout', /Did you mean checkout\?/],
  },
  explain: {
    kind: 'look',
    args: 'checkout 1',
    json: ['verdict'],
    wrong: ['checkout x', /is not a revision/],
  },
  report: {
    kind: 'look',
    args: 'checkout',
    json: [],
    wrong: ['chekcout', /Did you mean checkout\?/],
    given: adopted,
  },
  debug: {
    kind: 'look',
    args: 'checkout user:42',
    json: ['limiter'],
    wrong: ['chekcout user:42', /Did you mean checkout\?/],
    given: adopted,
  },
  'policy history': {
    kind: 'look',
    args: 'checkout',
    json: [],
    wrong: ['chekcout', /Did you mean checkout\?/],
    given: adopted,
  },
  'policy show': {
    kind: 'look',
    args: 'checkout',
    json: [],
    wrong: ['checkout nothash', /nothash/],
    given: adopted,
  },
  'policy diff': {
    kind: 'look',
    args: `checkout ${policyHash(policySchema.parse(policyInput())).slice(0, 12)}`,
    json: [],
    wrong: ['checkout nothash', /nothash/],
    given: async (world) => {
      await adopted(world);
      await adopted(world, { owner: 'payments' });
    },
  },
  check: {
    kind: 'look',
    args: (world) => policyFile(world),
    json: ['valid', 'policies'],
    wrong: ['--deadline x', /--deadline/],
  },
  plan: {
    kind: 'look',
    args: (world) => policyFile(world),
    json: ['limiters'],
    wrong: ['--detailed-exitcod', /Did you mean --detailed-exitcode\?/],
  },
  size: {
    kind: 'look',
    args: '--p999 80ms --slots 1 --instances 8',
    json: ['capacity', 'sentence'],
    wrong: ['--p999 80', /--p999/],
    required: '--p999 80ms --slots 1 --instances 8',
  },
  'functions dump': {
    kind: 'look',
    args: '',
    json: ['library', 'source'],
    wrong: ['--no-such', /flyball functions/],
  },
  completion: {
    kind: 'look',
    args: 'bash',
    json: ['shell', 'script'],
    wrong: ['tcsh', /Allowed choices are bash, zsh, fish/],
  },
  __complete: {
    kind: 'look',
    args: 'limiters',
    json: ['limiters'],
    wrong: ['x', /Allowed choices are limiters/],
  },

  run: { kind: 'apart', why: 'a daemon', wrong: ['--no-such', /flyball run --help/] },
  demo: { kind: 'apart', why: 'minutes of load', wrong: ['--seconds 1', /12/] },
  simulate: { kind: 'apart', why: 'seconds of computing', wrong: ['--seed x', /--seed/] },
  backtest: { kind: 'apart', why: 'a history of days', wrong: ['x.ts --since 5', /is no time/] },
  init: { kind: 'apart', why: 'writes a file', wrong: ['Bad_Name! --yes', /name/] },
  tail: { kind: 'apart', why: 'follows', wrong: ['checkout --ratio x', /--ratio/] },
  'functions load': {
    kind: 'apart',
    why: 'puts a library into the server',
    wrong: ['--no-such', /flyball functions/],
  },
  'notify test': { kind: 'apart', why: 'sends', wrong: ['--no-such', /flyball notify/] },
  'token add': {
    kind: 'apart',
    why: 'writes a file',
    wrong: ['--no-such', /flyball token/],
    required: '--role reader',
  },
  'audit migrate': {
    kind: 'apart',
    why: 'needs PostgreSQL',
    wrong: ['--no-such', /flyball audit/],
  },
  'token list': { kind: 'apart', why: 'reads a file', wrong: ['--no-such', /flyball token/] },
  'token remove': { kind: 'apart', why: 'writes a file', wrong: ['--no-such', /flyball token/] },
  doctor: {
    kind: 'apart',
    why: 'says what this machine lacks',
    wrong: ['--load 5', /has no unit/],
  },
};
