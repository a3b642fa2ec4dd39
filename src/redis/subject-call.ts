/** A take that asks what is known of its subjects: the keys of a plain one, and those of overrides, tiers, fair shares and the crowd. Stage: enforce. */
import type { TakeCall } from './calls.js';
import type { TakenKind } from './keys.js';
import type { ScriptCall } from './run-script.js';
import { subjectsScript } from './scripts.gen.js';
import { takeCall, takeText } from './take-call.js';

const KIND_OF: Record<string, TakenKind> = {
  'sliding-log': 'wl',
  'sliding-counter': 'wc',
  'fixed-window': 'wf',
  'leaky-bucket': 'wp',
};

/** Where the plain call names the subjects: after params and total, and with a window after the bucket too. */
const LEADING: Record<'b' | TakenKind, number> = { b: 2, wl: 3, wc: 3, wf: 3, wp: 2 };

/** Keys and arguments, as `docs/contract.md` lays them down. */
export function subjectTakeCall(call: TakeCall): ScriptCall {
  const { keys, takes, shadow } = call;
  const plain = takeCall({ ...call, takes: [] });
  const kind = KIND_OF[call.terms?.algorithm ?? ''] ?? 'b';
  const { index, shared } = keys.crowd(kind, shadow);
  const total = plain.keys[1]!;
  const subjects: string[] = [];
  const standings: string[] = [];
  for (const { subject } of takes) {
    subjects.push(subject === null ? total : subjectKey(call, kind, subject));
    standings.push(subject === null ? total : keys.standing(subject));
  }
  const args = [...plain.args, ...takes.map(takeText)];
  args[2] = shadow ? '5' : '4';
  return {
    script: kind === 'b' ? (subjectsScript as ScriptCall['script']) : plain.script,
    keys: [
      ...plain.keys.slice(0, LEADING[kind]),
      // Fair shares are of buckets: what the other algorithms keep lacks nothing that could be owed.
      ...(kind === 'b' ? [keys.owed(shadow)] : []),
      ...[keys.overrides, index, shared],
      ...subjects,
      ...standings,
    ],
    args,
  };
}

function subjectKey({ keys, shadow }: TakeCall, kind: 'b' | TakenKind, subject: string): string {
  if (kind !== 'b') return keys.taken(kind, subject, shadow);
  return shadow ? keys.shadowSubjectBucket(subject) : keys.subjectBucket(subject);
}
