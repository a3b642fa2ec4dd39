/** Anything an author wrote → a policy as plain data, or every fault of it at once. Pure. Stage: policy. */
import type { z } from 'zod';
import { PolicyError, type PolicyFault } from '../errors.js';
import { crossChecks } from './checks.js';
import { at, draftOf, type FieldFault, fieldsAt } from './draft.js';
import { profiled } from './profile.js';
import { type Policy, policySchema } from './schema.js';
import { refuse, show } from './units.js';
import { unknownField } from './words.js';

export type ParseResult = { policy: Policy; faults?: undefined } | { faults: PolicyFault[] };

/**
 * Checks each field, then what fields say of each other. `file` is only for the faults. A policy that
 * came out is valid input again, and comes out the same.
 */
export function parsePolicy(input: unknown, file: string): ParseResult {
  const result = policySchema.safeParse(input);
  const faults: FieldFault[] = result.success
    ? []
    : result.error.issues.flatMap((issue) => fieldFaults(issue, input));
  if (result.success || isObject(input)) faults.push(...crossChecks(draftOf(input), input));
  if (result.success && faults.length === 0) faults.push(...profileFaults(result.data));
  if (result.success && faults.length === 0) return { policy: result.data };
  return { faults: faults.map((fault) => ({ file, ...fault })) };
}

/** The policy must be whole under each of its profiles too; where it goes without a daemon is the same. */
function profileFaults(policy: Policy): FieldFault[] {
  return Object.keys(policy.profiles ?? {}).flatMap((name) => {
    const { profiles, schedule, ...rest } = profiled(policy, name);
    const parsed = policySchema.safeParse(rest);
    const faults = parsed.success
      ? crossChecks(draftOf(rest), rest).filter(({ field }) => !field.startsWith('whenLost'))
      : parsed.error.issues.flatMap((issue) => fieldFaults(issue, rest));
    return faults.map(({ field, message }) => ({
      field: `profiles.${name}`,
      message: `makes ${field} a fault: it ${message}`,
    }));
  });
}

/** The same for callers that want an error: a `PolicyError` with all faults. */
export function resolvePolicy(input: unknown, file = '(inline)'): Policy {
  const result = parsePolicy(input, file);
  if ('policy' in result) return result.policy;
  throw new PolicyError(result.faults);
}

type Issue = z.core.$ZodIssue;

function fieldFaults(issue: Issue, input: unknown): FieldFault[] {
  const path = issue.path;
  const field = path.map(String).join('.');
  const value = at(input, ...path);
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((name) => ({
        field: field ? `${field}.${name}` : name,
        message: unknownField(name, String(path[0] ?? ''), fieldsAt(input, path)),
      }));
    case 'invalid_value':
      return [{ field, message: refuse(value, `one of ${issue.values.map(show).join(', ')}`) }];
    case 'invalid_key':
      return [{ field, message: `${issue.issues[0]?.message ?? 'is not a key that is allowed'}.` }];
    case 'invalid_union':
      return [unionFault(issue, field, value)];
    case 'invalid_type':
      if (field === '') return [{ field, message: wholeFault(input) }];
      return [{ field, message: refuse(value, TYPE_WORDS[issue.expected] ?? issue.expected) }];
    case 'too_small':
      return [{ field, message: refuse(value, 'a text of at least one character') }];
    default:
      return [{ field, message: issue.message }];
  }
}

function unionFault(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  field: string,
  value: unknown,
): FieldFault {
  const options = (issue as { options?: unknown[] }).options;
  if (options) return { field, message: refuse(value, `one of ${options.map(show).join(', ')}`) };
  if (field.startsWith('signals.')) {
    return { field, message: refuse(value, "an address or env('DATABASE_URL')") };
  }
  return { field, message: refuse(value, 'allowed here') };
}

const TYPE_WORDS: Record<string, string> = {
  object: 'an object in braces',
  record: 'an object in braces',
  array: 'a list in brackets',
  boolean: 'true or false',
  string: 'a text in quotes',
};

function wholeFault(input: unknown): string {
  if (Array.isArray(input)) return 'a list is not a policy: write one policy a file.';
  return `${show(input)} is not a policy. Write: export default definePolicy({ limiter: { name, rate, capacity } })`;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
