/** A take as a script call: keys and arguments, by the algorithm in force. Stage: enforce. */
import type { AlgorithmTerms } from './algorithms.js';
import type { FallbackNumbers, TakeCall, TakeRequest } from './calls.js';
import type { TakenKind } from './keys.js';
import type { ScriptCall } from './run-script.js';
import { counterScript, logScript, paceScript, takeScript, windowScript } from './scripts.gen.js';

/**
 * Keys and arguments of a take, as `docs/contract.md` lays them down. `mayPack`: the client can be handed bytes, so
 * many answers may come in one string.
 */
export function takeCall(call: TakeCall, mayPack = false): ScriptCall {
  const layout = layoutOf(call.terms);
  if (layout !== null) return termsCall(call, layout);
  const { keys, takes, chargeByUs, shadow, fallback } = call;
  const bucket = shadow ? keys.shadowBucket : keys.bucket;
  const packed = mayPack && takes.length > 1;
  const names: string[] = [keys.params, bucket];
  const args: (string | number)[] = [
    time(call.nowUs),
    chargeByUs === 'any' ? '' : (chargeByUs ?? '0'),
    packed ? (shadow ? '3' : '2') : shadow ? '1' : '0',
    fallbackText(fallback),
  ];
  let alike = true;
  for (let i = 0; i < takes.length; i++) {
    const each = takes[i]!;
    const { subject } = each;
    if (subject === null) names.push(bucket);
    else names.push(shadow ? keys.shadowSubjectBucket(subject) : keys.subjectBucket(subject));
    const text = takeText(each);
    args.push(text);
    if (text !== args[4]) alike = false;
  }
  // One argument holds for all.
  if (alike && takes.length > 1) args.length = 5;
  return { script: takeScript as ScriptCall['script'], keys: names, args, packed };
}

/** The same for an algorithm that keeps windows or a queue instead of buckets. */
function termsCall(call: TakeCall, layout: Layout): ScriptCall {
  const { keys, takes, chargeByUs, shadow, fallback } = call;
  const total = keys.taken(layout.kind, null, shadow);
  const names = [keys.params, total];
  const args: (string | number)[] = [
    time(call.nowUs),
    chargeByUs === 'any' ? '' : (chargeByUs ?? '0'),
    shadow ? '1' : '0',
    fallbackText(fallback),
  ];
  if (layout.window !== null) {
    names.push(shadow ? keys.shadowBucket : keys.bucket);
    args.push(layout.window);
  }
  for (const each of takes) {
    names.push(each.subject === null ? total : keys.taken(layout.kind, each.subject, shadow));
    args.push(takeText(each));
  }
  return { script: layout.script as ScriptCall['script'], keys: names, args };
}

/** A take as an argument of the scripts. */
export function takeText({ cost, priority }: TakeRequest): string {
  const tokens = cost === 1 ? '1' : plainDecimal(cost);
  return priority === 'default' ? tokens : `${tokens} ${priority}`;
}

/** `1e-7` and `1e21` are no plain decimals: the script refuses them, and so refuses what has no ≤ 6 decimals. */
function plainDecimal(cost: number): string {
  return Object.is(cost, -0) ? '-0' : String(cost);
}

const fallbackTexts = new WeakMap<FallbackNumbers, string>();

/** Numbers for missing params, as one text; callers keep one object for as long as its numbers hold. */
export function fallbackText(numbers: FallbackNumbers): string {
  let text = fallbackTexts.get(numbers);
  if (text === undefined) {
    const { rate, capacity, inFlightMax, subjectRate, subjectCapacity } = numbers;
    text = `${rate} ${capacity} ${inFlightMax} ${subjectRate} ${subjectCapacity}`;
    fallbackTexts.set(numbers, text);
  }
  return text;
}

/** An argument of the scripts: empty for Redis's own time. */
export function time(nowUs: number | undefined): number | string {
  return nowUs ?? '';
}

/** A script of another algorithm than the token bucket, and what its keys and arguments need. */
interface Layout {
  script: ScriptCall['script'];
  kind: TakenKind;
  /** The window argument; null: the algorithm has none. */
  window: string | null;
}

/** null: the token bucket. */
function layoutOf(terms: AlgorithmTerms | undefined): Layout | null {
  if (terms === undefined) return null;
  const { algorithm, windowMs, cells } = terms;
  switch (algorithm) {
    case 'token-bucket':
      return null;
    case 'sliding-log':
      return { script: logScript as ScriptCall['script'], kind: 'wl', window: `${windowMs}` };
    case 'sliding-counter':
      return {
        script: counterScript as ScriptCall['script'],
        kind: 'wc',
        window: `${windowMs} ${cells}`,
      };
    case 'fixed-window':
      return { script: windowScript as ScriptCall['script'], kind: 'wf', window: `${windowMs}` };
    case 'leaky-bucket':
      return { script: paceScript as ScriptCall['script'], kind: 'wp', window: null };
  }
}
