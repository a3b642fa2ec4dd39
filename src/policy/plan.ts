/** What differs between two policies, field by field, as a person reads it. Pure. Stage: policy → cli, api. */
import type { Policy } from './schema.js';

export interface FieldChange {
  /** Dotted path: `bounds.rate.max`. */
  field: string;
  /** `add`: the field was not stated; `remove`: it is no longer. */
  kind: 'add' | 'change' | 'remove';
  /** null where it was, or is, not stated. */
  before: unknown;
  after: unknown;
}

/** In the order of the second policy, then what it lacks. Lists are told as a whole. */
export function policyDiff(before: Policy, after: Policy): FieldChange[] {
  return diff('', before, after);
}

function diff(path: string, before: unknown, after: unknown): FieldChange[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
    return names.flatMap((name) =>
      diff(path === '' ? name : `${path}.${name}`, before[name], after[name]),
    );
  }
  // What is added or taken away as a whole is told by its parts.
  if (before === undefined && isObject(after) && Object.keys(after).length > 0) {
    return diff(path, {}, after);
  }
  if (after === undefined && isObject(before) && Object.keys(before).length > 0) {
    return diff(path, before, {});
  }
  if (same(before, after)) return [];
  const kind = before === undefined ? 'add' : after === undefined ? 'remove' : 'change';
  return [{ field: path, kind, before: before ?? null, after: after ?? null }];
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, i) => same(each, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => same(a[name], b[name]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
