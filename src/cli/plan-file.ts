/** A saved plan: the policies to adopt, and what each limiter stood at, as JSON that people can read. Stage: cli. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { LoadedPolicy } from '../actuate/adopt.js';
import type { AdoptStep } from '../actuate/verbs/adopt-all.js';
import type { Stood } from '../actuate/verbs/stood.js';
import { FlyballError } from '../errors.js';
import { policyHash, policyJson } from '../policy/hash.js';
import { parsePolicy } from '../policy/parse.js';
import { type PlanView, stepsOf } from '../view/plan.js';
import { UsageError } from './output.js';

interface SavedLimiter {
  limiter: string;
  action: 'create' | 'change' | 'mend';
  file: string;
  /** SHA-256 of the file's text. */
  source: string | null;
  /** Hash of the policy. */
  hash: string;
  /** Plain data; what the environment holds is named, not written out. */
  policy: unknown;
  stood: Stood | null;
}

interface SavedPlan {
  flyball: 'plan';
  version: 1;
  at: string;
  by: string;
  redis: string;
  limiters: SavedLimiter[];
}

const VERSION = 1;

/** Writes it for its owner alone. */
export function savePlan(
  path: string,
  view: PlanView,
  loaded: readonly LoadedPolicy[],
  by: string,
): void {
  const limiters = stepsOf(view.limiters, loaded).map(({ loaded: one, stood, mends }) => {
    const action = stood === null ? 'create' : mends ? 'mend' : 'change';
    const { file, hash, json, text, policy } = one;
    const source = text === undefined ? null : textSum(text);
    const limiter = policy.limiter.name;
    return { limiter, action, file, source, hash, policy: JSON.parse(json), stood } as SavedLimiter;
  });
  const at = new Date(view.atMs).toISOString();
  const plan: SavedPlan = {
    flyball: 'plan',
    version: VERSION,
    at,
    by,
    redis: view.redis,
    limiters,
  };
  try {
    writeFileSync(path, `${JSON.stringify(plan, null, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    throw new UsageError(
      `--out ${path} cannot be written (${(error as NodeJS.ErrnoException).code}).`,
      'Give a file in a folder that exists.',
    );
  }
}

/** null: the file is no saved plan, so it is a policy. */
export function readPlan(path: string): AdoptStep[] | null {
  if (!path.endsWith('.json')) return null;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw broken(path, `cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  let saved: Partial<SavedPlan> | null;
  try {
    saved = JSON.parse(text);
  } catch {
    throw broken(path, 'is not JSON: it may be half-written');
  }
  if (saved?.flyball !== 'plan' || !Array.isArray(saved.limiters)) {
    throw broken(path, 'is not a plan of flyball');
  }
  if (saved.version !== VERSION) {
    throw broken(path, `is of version ${saved.version}, and this flyball knows ${VERSION}`);
  }
  return saved.limiters.map((one) => stepOf(path, one));
}

function stepOf(path: string, one: SavedLimiter): AdoptStep {
  const parsed = parsePolicy(one?.policy, path);
  if (parsed.faults) throw broken(path, `holds a policy with a fault: ${parsed.faults[0]?.field}`);
  const { policy } = parsed;
  const { name } = policy.limiter;
  if (policyHash(policy) !== one.hash || name !== one.limiter) {
    throw broken(path, `was changed: the policy of ${name} is not the one that was planned`);
  }
  const { hash, file, action } = one;
  const text = sameText(one);
  const loaded = { file, policy, hash, json: policyJson(policy), ...(text !== null && { text }) };
  return { loaded, stood: stoodFrom(path, one), mends: action === 'mend' };
}

function stoodFrom(path: string, { limiter, stood }: SavedLimiter): Stood | null {
  if (stood === null) return null;
  const { policy, mode, rollout, byPerson } = stood ?? {};
  const sound =
    [policy, mode, rollout].every((text) => typeof text === 'string') &&
    typeof byPerson === 'object' &&
    byPerson !== null;
  if (!sound) throw broken(path, `does not say what ${limiter} stood at`);
  return stood;
}

/** The file's text, where it lies here and is the one that was planned. */
function sameText({ file, source }: SavedLimiter): string | null {
  try {
    const text = readFileSync(file, 'utf8');
    return textSum(text) === source ? text : null;
  } catch {
    return null;
  }
}

function textSum(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function broken(path: string, why: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_CLI_PLAN_FILE',
    `${path} ${why}. Make it anew: flyball plan --out ${path}`,
  );
}
