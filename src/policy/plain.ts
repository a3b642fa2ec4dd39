/** What a policy file exports → plain data, or what in it is none. Stage: policy. */

export interface PlainFault {
  field: string;
  message: string;
}

/** Copies data only: functions, instances, promises, accessors and circles are named with their path. */
export function plainData(value: unknown): { value: unknown; faults: PlainFault[] } {
  const faults: PlainFault[] = [];
  const copy = (part: unknown, path: readonly string[], above: readonly object[]): unknown => {
    const refuse = (what: string) => {
      const message = `is ${what}: a policy is plain data. Write the value itself.`;
      faults.push({ field: path.join('.'), message });
      return undefined;
    };
    if (typeof part === 'function') return refuse('a function');
    if (typeof part === 'symbol' || typeof part === 'bigint') return refuse(`a ${typeof part}`);
    if (typeof part !== 'object' || part === null) return part;
    if (above.includes(part)) return refuse('a circle');
    if (path.length > 20) return refuse('nested too deep');
    const inside = [...above, part];
    if (Array.isArray(part)) {
      return part.map((item, i) => copy(item, [...path, String(i)], inside));
    }
    const prototype: unknown = Object.getPrototypeOf(part);
    if (prototype !== Object.prototype && prototype !== null) {
      // Of another realm it is still a plain object when its prototype has none above it.
      if (Object.getPrototypeOf(prototype) !== null) {
        return refuse(`an instance of ${part.constructor?.name ?? 'a class'}`);
      }
    }
    const out: Record<string, unknown> = {};
    for (const key of Object.keys(part)) {
      const child = (part as Record<string, unknown>)[key];
      // Absent and undefined are one thing in a policy.
      if (child === undefined) continue;
      Object.defineProperty(out, key, {
        value: copy(child, [...path, key], inside),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return out;
  };
  return { value: copy(value, [], []), faults };
}
