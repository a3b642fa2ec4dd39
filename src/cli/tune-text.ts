/** A recommendation as people read it: beside what is in force, its band, what binds, why, and the policy's diff. Stage: cli. */
import type { Facts } from '../actuate/verbs/plan.js';
import type { Policy } from '../policy/schema.js';
import type { Recommendation, Tuned } from '../tune/recommend.js';
import type { CliIo } from './output.js';
import { clean, number, span } from './text.js';

export function tuneText(io: CliIo, limiter: string, found: Recommendation, facts: Facts): string {
  const { minutes, rate, capacity, inFlightMax } = found;
  const left = Object.entries(minutes.leftOut)
    .filter(([, count]) => count > 0)
    .map(([why, count]) => `${count} ${why}`);
  const rows = [
    row('rate', rate, '/s'),
    ...(capacity === null ? [] : [row('capacity', capacity, '')]),
    ...(inFlightMax === null ? [] : [row('in-flight cap', inFlightMax, '')]),
  ];
  const lines = [
    `${io.c.bold(clean(limiter))} from ${minutes.used} minutes over ${span(minutes.toMs - minutes.fromMs)}${left.length === 0 ? '' : ` (left out: ${left.join(', ')})`}`,
    io.table(['', 'in force', 'recommended', 'band', 'binds'], rows),
    '',
    `rate: ${clean(rate.why)}`,
    ...(capacity === null ? [] : [`capacity: ${clean(capacity.why)}`]),
    ...(inFlightMax === null ? [] : [`in-flight cap: ${clean(inFlightMax.why)}`]),
    ...found.missing.map((what) => io.c.yellow(`not known: ${clean(what)}`)),
  ];
  const changes = facts.policy === null ? [] : policyDiff(facts.policy, found);
  if (changes.length > 0) {
    lines.push('', 'In the policy:');
    for (const { field, from, to } of changes) {
      if (from !== undefined) lines.push(io.c.red(`- ${field}: ${from}`));
      lines.push(io.c.green(`+ ${field}: ${to}`));
    }
  }
  return lines.join('\n');
}

function row(name: string, tuned: Tuned, unit: string): string[] {
  const { inForce, value, band, binds } = tuned;
  const sure = band === null ? '' : `${three(band.low)} … ${three(band.high)}`;
  return [name, `${number(inForce)}${unit}`, `${number(value)}${unit}`, sure, binds];
}

/** What would be written into the policy's file; fields that stay are left out. */
export function policyDiff(
  policy: Policy,
  { rate, capacity, inFlightMax, bounds }: Recommendation,
): { field: string; from: string | undefined; to: string }[] {
  const { limiter } = policy;
  const range = (of: { min: number; max: number } | undefined) =>
    of === undefined ? undefined : `{ min: ${of.min}, max: ${of.max} }`;
  const text = (of: number | undefined) => (of === undefined ? undefined : String(of));
  const wanted: [string, string | undefined, string | undefined][] = [
    ['limiter.rate', text(limiter.rate), text(rate.wanted)],
    ['limiter.capacity', text(limiter.capacity), text(capacity?.wanted)],
    ['limiter.inFlightMax', text(limiter.inFlightMax), text(inFlightMax?.wanted)],
    ['bounds.rate', range(policy.bounds?.rate), range(bounds?.rate)],
    ['bounds.inFlight', range(policy.bounds?.inFlight), range(bounds?.inFlight)],
  ];
  return wanted.flatMap(([field, from, to]) =>
    to === undefined || from === to ? [] : [{ field, from, to }],
  );
}

function three(value: number): string {
  return number(Number(value.toPrecision(3)));
}
