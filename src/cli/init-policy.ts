/** The text of a first policy, to be read: each number says what it is and where it is from. Pure. Stage: cli. */
import type { Sizes } from './init-size.js';
import type { FoundDatabase } from './init-surroundings.js';

export interface FirstPolicy {
  name: string;
  sizes: Sizes;
  database: Pick<FoundDatabase, 'kind' | 'variable'> | null;
}

/** In `recommend` mode: what is enforced is what stands in it. */
export function firstPolicy({ name, sizes, database }: FirstPolicy): string {
  const { rate, capacity, inFlight, p95Ms, errorPercent, waiting } = sizes;
  const said = (why: string) => (why === '' ? '' : ` // ${why}`);
  const cap =
    inFlight === null
      ? '// inFlightMax: 24, // most requests under way at once; give it when the service reports completions'
      : `inFlightMax: ${inFlight.value}, // most requests under way at once; ${inFlight.why}`;
  const capBounds =
    inFlight === null
      ? ''
      : `, inFlight: { min: ${Math.min(2, inFlight.value)}, max: ${inFlight.value * 4} }`;
  const words = ['adaptive', 'definePolicy', 'telemetry', 'upstreamErrors'];
  if (database !== null) words.push('env', database.kind);
  const wait = database
    ? `dbWait: ${database.kind}.waiting({ url: env('${database.variable}') }),`
    : "// dbWait: postgres.waiting({ url: env('DATABASE_URL') }), // import postgres and env too";
  return `import { ${words.sort().join(', ')} } from 'flyball';

export default definePolicy({
  limiter: {
    name: '${name}',
    // Totals over all instances of the service. Start with what it surely bears.
    rate: ${rate.value}, // tokens per second, a request takes one; ${rate.why}
    capacity: ${capacity}, // most tokens held: how large a burst may be
    ${cap}
  },
  signals: {
    p95: telemetry.latency('p95'),
    errors: telemetry.errorRatio(),
    upstream: upstreamErrors('SYSTEMERROR'), // failures that the service reports with this code
    ${wait}
  },
  // What should hold. Set it from what users need, not from what is measured today.
  objective: {
    p95: { below: '${p95Ms.value}ms' },${said(p95Ms.why)}
    errors: { below: '${errorPercent.value}%' },${said(errorPercent.why)}${
      database ? `\n    dbWait: { below: ${waiting.value} },${said(waiting.why)}` : ''
    }
  },
  control: adaptive(),
  // The autopilot never leaves these.
  bounds: { rate: { min: ${tidy(rate.value / 5)}, max: ${tidy(rate.value * 4)} }${capBounds} },
  // More than 100 of those failures in a minute: nothing passes for 5 s, then one probe a second.
  breaker: { on: 'upstream', above: 100, per: '1m', openFor: '5s', probeRate: 1 },
  // While Redis is away each process limits on its own, with its part of the rate.
  onRedisError: 'local',
  // The numbers above are enforced as they are; what the autopilot would do is only recorded
  // (flyball audit ${name}). When you agree with it: mode: 'auto'; flyball promote ${name} --to auto
  // shows the evidence.
  mode: 'recommend',
});
`;
}

function tidy(value: number): number {
  return Number(value.toPrecision(3));
}
