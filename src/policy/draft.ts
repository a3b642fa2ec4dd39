/** A faulty policy as far as it can be read, so that the checks between fields still see the sound parts. Stage: policy. */
import { z } from 'zod';
import { type Policy, policySchema } from './schema.js';

/** A key is there when it was written or has a default; its value is undefined when that part is faulty. */
export type Draft = Sparse<Policy>;
type Sparse<T> = T extends readonly unknown[] | string | number | boolean
  ? T
  : T extends object
    ? { [K in keyof T]?: Sparse<T[K]> | undefined }
    : T;

export interface FieldFault {
  /** Dotted path, `bounds.rate.min`. */
  field: string;
  message: string;
}

export type Report = (field: string, message: string) => void;

export function draftOf(raw: unknown): Draft {
  return (read(policySchema, raw) ?? {}) as Draft;
}

function read(schema: z.ZodType, value: unknown): unknown {
  const inner = value === undefined ? schema : bare(schema, value);
  if (inner instanceof z.ZodObject && isRecord(value)) {
    const out: Record<string, unknown> = {};
    for (const [key, field] of Object.entries(inner.shape as Record<string, z.ZodType>)) {
      const part = read(field, Object.hasOwn(value, key) ? value[key] : undefined);
      if (part !== undefined || Object.hasOwn(value, key)) out[key] = part;
    }
    return out;
  }
  if (inner instanceof z.ZodRecord && isRecord(value)) {
    const item = inner.valueType as z.ZodType;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, read(item, part)]));
  }
  const result = inner.safeParse(value);
  return result.success ? result.data : undefined;
}

/** The schema of a value without its optional and default wrappers; of a union the option that is meant. */
function bare(schema: z.ZodType, value: unknown): z.ZodType {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  ) {
    return bare(schema.unwrap() as z.ZodType, value);
  }
  if (schema instanceof z.ZodDiscriminatedUnion && isRecord(value)) {
    const options = (schema.options as z.ZodType[]).map((option) => bare(option, value));
    const meant = options.find((option) => {
      if (!(option instanceof z.ZodObject)) return false;
      const field = (option.shape as Record<string, z.ZodType>)[schema.def.discriminator];
      return field?.safeParse(value[schema.def.discriminator]).success;
    });
    return meant ?? schema;
  }
  return schema;
}

/** The field names that are allowed at a path; empty when the path leads to no object. */
export function fieldsAt(raw: unknown, path: readonly PropertyKey[]): string[] {
  let schema = bare(policySchema, raw);
  let value = raw;
  for (const part of path) {
    value = isRecord(value) || Array.isArray(value) ? at(value, part) : undefined;
    if (schema instanceof z.ZodObject) {
      const next = (schema.shape as Record<string, z.ZodType>)[String(part)];
      if (!next) return [];
      schema = bare(next, value);
    } else if (schema instanceof z.ZodRecord) schema = bare(schema.valueType as z.ZodType, value);
    else if (schema instanceof z.ZodArray) schema = bare(schema.element as z.ZodType, value);
    else return [];
  }
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** A field of what was written, however wrong its form. */
export function at(raw: unknown, ...path: PropertyKey[]): unknown {
  let value = raw;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
