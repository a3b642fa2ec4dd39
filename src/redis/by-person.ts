/** What a person set in place of the policy's own, as the params carry it: mode, numbers, the policy itself. Stage: actuate, cli. */
import { MODES, type Mode } from './params.js';

/** Stands for as long as the policy's own value is `over`. */
export interface Personal<T> {
  is: T;
  over: T;
  /** Who set it. */
  by: string;
}

export interface ByPerson {
  /** Hash of the policy adopted, and of that which it replaced: a daemon that starts with the latter does not adopt it. */
  policy?: Personal<string>;
  mode?: Personal<Mode>;
  rate?: Personal<number>;
  capacity?: Personal<number>;
  /** 0: no cap. */
  inFlightMax?: Personal<number>;
}

export const PERSONAL_NUMBERS = ['rate', 'capacity', 'inFlightMax'] as const;
/** A name longer than this is cut: params are no place for prose. */
export const LONGEST_NAME = 200;

/** Empty: nothing. */
export function byPersonText(said: ByPerson): string {
  const fields = ['policy', 'mode', ...PERSONAL_NUMBERS] as const;
  const given = fields.filter((field) => said[field] !== undefined);
  if (given.length === 0) return '';
  const short = (field: (typeof fields)[number]) => {
    const { is, over, by } = said[field]!;
    return { is, over, by: by.slice(0, LONGEST_NAME) };
  };
  return JSON.stringify(Object.fromEntries(given.map((field) => [field, short(field)])));
}

/** What nothing of ours wrote is nothing. */
export function parseByPerson(text: string): ByPerson {
  if (text === '') return {};
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text);
  } catch {
    return {};
  }
  if (typeof value !== 'object' || value === null) return {};
  const said: ByPerson = {};
  const policy = personal(value.policy, (v): v is string => typeof v === 'string');
  if (policy !== null) said.policy = policy;
  const mode = personal(value.mode, (v): v is Mode => MODES.includes(v as Mode));
  if (mode !== null) said.mode = mode;
  for (const field of PERSONAL_NUMBERS) {
    const number = personal(
      value[field],
      (v): v is number => typeof v === 'number' && Number.isFinite(v) && v >= 0,
    );
    if (number !== null) said[field] = number;
  }
  return said;
}

function personal<T>(value: unknown, isOne: (v: unknown) => v is T): Personal<T> | null {
  const { is, over, by } = (value ?? {}) as Record<string, unknown>;
  return isOne(is) && isOne(over) && typeof by === 'string' ? { is, over, by } : null;
}
