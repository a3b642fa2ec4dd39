/** The canonical bytes of a policy and their hash: its identity in Redis and in audit entries. Stage: policy. */
import { createHash } from 'node:crypto';
import { configure } from 'safe-stable-stringify';
import type { Policy } from './schema.js';

const canonical = configure({ bigint: false, circularValue: Error });

/** Canonical JSON: keys sorted, no spaces, defaults filled in, `env` references unresolved. */
export function policyJson(policy: Policy): string {
  return canonical(policy) as string;
}

/** SHA-256 of the canonical JSON, hex. */
export function policyHash(policy: Policy): string {
  return textHash(policyJson(policy));
}

/** The hash of a text that claims to be a policy's canonical JSON. */
export function textHash(json: string): string {
  return createHash('sha256').update(json, 'utf8').digest('hex');
}
