/** Capacity and rate by the numbers of a service: its slots, its connections, what it has shown. Stage: tune. */

/** Share of what the slots could do at their slowest that is given out: the rest is for what the numbers do not know. */
export const HEADROOM = 0.7;

export interface Sizing {
  /** Response time that 99.9 % stay within while the service is not busy, ms. */
  p999Ms: number;
  /** Requests that one instance serves at a time, and instances. */
  slotsPerInstance: number;
  instances: number;
  /** Database connections of all instances together, and how long a request holds one, on average, ms. */
  connections?: number | undefined;
  holdMs?: number | undefined;
  /** Tokens per second that are wanted; undefined: only the capacity is asked for. */
  rate?: number | undefined;
}

/** `slots`: the service's own places bind; `connections`: the database's; `rate`: a second of the rate is more than both. */
export type Binding = 'slots' | 'connections' | 'rate';

export interface Sized {
  capacity: number;
  binds: Binding;
  bySlots: number;
  /** null: no connections were given. */
  byConnections: number | null;
  /** The rate as given, or as lowered to what the connections allow; null: none was given. */
  rate: number | null;
  /** In flight that all slots together hold. */
  slots: number;
  sentence: string;
}

/**
 *   bySlots       = floor(1000 ÷ p999Ms × slotsPerInstance × instances × 0.7)
 *   byConnections = floor(connections ÷ mean hold time in seconds)
 *   rate          = min(rate, byConnections)
 *   capacity      = max(rate, min(bySlots, byConnections))
 *
 * The first says how many requests a second end even if each took as long as the slowest in a thousand: a burst of
 * that size drains within about a second (Little's law, N = X · W, with W at its 99.9th percentile, kept to 70 % of
 * N). The second is Little's law of the connection pool: more than connections ÷ hold time a second only queues. The
 * third: a bucket smaller than a second of its rate denies what the rate was meant to admit, so what has been shown
 * to pass (the rate) leads over the estimate, but never over the connections.
 */
export function sizeOf(sizing: Sizing): Sized {
  const { p999Ms, slotsPerInstance, instances, connections, holdMs } = sizing;
  const slots = slotsPerInstance * instances;
  const bySlots = whole((1000 / p999Ms) * slots * HEADROOM);
  const byConnections =
    connections === undefined || holdMs === undefined ? null : whole(connections / (holdMs / 1000));
  const most = byConnections ?? Number.POSITIVE_INFINITY;
  const rate = sizing.rate === undefined ? null : Math.min(sizing.rate, most);
  const estimate = Math.min(bySlots, most);
  const leads = rate !== null && Math.ceil(rate) > estimate;
  const capacity = Math.max(1, leads ? Math.ceil(rate) : estimate);
  const atMost = byConnections !== null && (rate === byConnections || estimate === byConnections);
  const binds: Binding = atMost ? 'connections' : leads ? 'rate' : 'slots';
  const sized = { capacity, binds, bySlots, byConnections, rate, slots };
  return { ...sized, sentence: sentenceOf(sizing, sized) };
}

function sentenceOf(sizing: Sizing, sized: Omit<Sized, 'sentence'>): string {
  const { p999Ms, slotsPerInstance, instances, connections, holdMs } = sizing;
  const { bySlots, byConnections, binds, capacity, rate } = sized;
  const slots = `1000 ÷ ${short(p999Ms)} ms × ${short(slotsPerInstance)} × ${short(instances)} × ${HEADROOM} = ${bySlots}`;
  const pool =
    byConnections === null
      ? ''
      : `${short(connections!)} connections ÷ ${short(holdMs!)} ms = ${byConnections} a second`;
  if (binds === 'slots') {
    return `The slots bind: ${slots}.${pool ? ` The connections would allow ${pool}.` : ''}`;
  }
  if (binds === 'rate') {
    return `The rate binds: a bucket holds at least a second of ${short(rate!)}/s, so ${capacity}, although the slots say ${slots}.`;
  }
  const cut =
    sizing.rate !== undefined && rate !== null && rate < sizing.rate
      ? ` The rate is lowered from ${short(sizing.rate)}/s to ${short(rate)}/s, or requests would only queue for a connection.`
      : '';
  return `The connections bind: ${pool}.${cut} The slots say ${slots}.`;
}

/** A product that should be whole may lie a hair below it. */
function whole(value: number): number {
  return Math.floor(value * (1 + 1e-12) + 1e-9);
}

function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}
