/** Moments and the clock on the wall of a time zone, both ways, by the zones that this machine knows. Stage: policy, tune. */

export const DAY_MS = 86_400_000;

/** Does this machine know the zone? */
export function isTimeZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** A moment as the clock on the wall shows it, as if that were UTC. */
export function localMs(zone: string, atMs: number): number {
  const part: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(atMs)) part[type] = Number(value);
  const { year, month, day, hour, minute, second } = part;
  return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!);
}

/** The first moment at which the wall shows this time; if it never does, the end of the gap. */
export function instantOf(zone: string, wallMs: number): number {
  const offset = (atMs: number) => localMs(zone, atMs) - Math.floor(atMs / 1000) * 1000;
  const [before, after] = [offset(wallMs - DAY_MS), offset(wallMs + DAY_MS)];
  const first = wallMs - Math.max(before, after);
  const second = wallMs - Math.min(before, after);
  for (const atMs of [first, second]) if (localMs(zone, atMs) === wallMs) return atMs;
  // The gap lies between the two: the first moment with the later offset.
  let [low, high] = [first, second];
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000;
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    const digits = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
    const time = {
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      hourCycle: 'h23',
    } as const;
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, ...digits, ...time });
    formats.set(zone, format);
  }
  return format;
}
