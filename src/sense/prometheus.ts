/** Asks a Prometheus, or what speaks its API, an instant query: one number, and how old the samples behind it are. Stage: sense. */
import { guarded } from './guarded.js';
import { createHttpClient } from './http-get.js';
import { type HttpSignal, missingForHttp, targetOf } from './http-target.js';
import { type Answer, instant, numberOf } from './prometheus-answer.js';
import { ageQuery, selectorsOf } from './promql-selectors.js';
import type { Missing } from './readings.js';
import { seenNumber } from './seen.js';
import {
  keyOf,
  lookOf,
  missing,
  type Seen,
  type Source,
  type SourceDeps,
  unaskable,
} from './source.js';

type PrometheusSignal = Extract<HttpSignal, { source: 'prometheus' }>;

/** Older samples say nothing of now: with the usual scrapes of 15 s to 60 s they are still allowed to be late once. */
const MAX_AGE_MS = 120_000;
const DEADLINE_MS = 800;

/** Both questions of a look, and when they were asked. */
interface Asked {
  answer: Answer;
  /** Age in seconds of the newest sample of each selector that has one; null when it could not be asked. */
  ages: Map<number, number> | null;
  monotonicMs: number;
}

export function prometheusKey(signal: PrometheusSignal, env: NodeJS.ProcessEnv): string {
  const { query, deadlineMs, tls } = signal;
  const found = targetOf(signal, env);
  // What becomes of the answer (aggregate, unit, maxAge) is not part of the question.
  const where = 'kind' in found ? signal.url : [found.target.url.href, found.target.headers];
  return keyOf('prometheus', where, query, deadlineMs, tls);
}

export function createPrometheusSource(signal: PrometheusSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { query, deadlineMs = DEADLINE_MS } = signal;
  const found = targetOf(signal, env);
  if ('kind' in found) return unaskable(found);
  const { target, secrets } = found;
  const client = createHttpClient(target, { accept: 'application/json', reuse: true });
  const selectors = selectorsOf(query);
  /** What was seen last of each kind of reading, and the server's moment (ms) it spoke of. */
  const told = new Map<string, { seen: Seen; sampleMs: number }>();

  const guard = guarded<Asked>({
    name: `Prometheus at ${target.url.host}`,
    source: 'prometheus',
    deadlineMs,
    log,
    secrets,
    async ask(over) {
      const monotonicMs = clock.monotonicMs();
      const [answer, ages] = await Promise.all([
        instant(client, target.url, query, over),
        selectors.length === 0
          ? null
          : instant(client, target.url, ageQuery(selectors), over).catch(refused),
      ]);
      return { answer, ages: ages === null ? null : agesOf(ages), monotonicMs };
    },
    missingFor: missingForHttp,
  });

  function seenOf(asked: Asked, wanted: PrometheusSignal): Seen | Missing {
    const { answer, ages, monotonicMs } = asked;
    const { aggregate = 'none', unit = 'count', maxAge = MAX_AGE_MS } = wanted;
    if (answer.warnings.length > 0) {
      return missing('partial', `it warns: ${answer.warnings.join('; ')}`);
    }
    if (answer.series.length === 0) return nothing(ages);
    if (ages?.size === 0) {
      // `sum(x) or vector(0)` while the target is down: a zero that nothing stands behind.
      const of = selectors.join(', ');
      return missing(
        'no_data',
        `the query gives a number, but no series match ${of}: it is made of nothing`,
      );
    }
    const number = oneNumber(answer.series, aggregate);
    if (typeof number !== 'number') return number;
    const ageMs = ages === null ? null : Math.max(...ages.values()) * 1000;
    if (ageMs !== null && ageMs > maxAge) {
      return missing(
        'stale',
        `its newest sample is ${Math.round(ageMs / 1000)} s old, more than maxAge (${maxAge / 1000} s)`,
      );
    }
    const kept = `${aggregate} ${unit}`;
    const sampleMs = answer.series[0]!.seconds * 1000 - (ageMs ?? 0);
    const last = told.get(kept);
    // The same samples in a later window are no news.
    if (ageMs !== null && last && Math.abs(last.sampleMs - sampleMs) < 2) return last.seen;
    const seen = seenNumber(number, unit, monotonicMs - Math.max(0, ageMs ?? 0));
    if (seen.kind === 'value') told.set(kept, { seen, sampleMs });
    return seen;
  }

  function nothing(ages: Map<number, number> | null): Missing {
    const empty = ages === null ? [] : selectors.filter((_of, i) => !ages.has(i));
    const why =
      empty.length > 0
        ? `No series match ${empty.join(', ')}: is the name or a label wrong, or the target down?`
        : 'There are series, but none is left by what the query makes of them.';
    return missing('no_data', `the query gives an empty vector. ${why}`);
  }

  return {
    async look(wanted) {
      const asked = await guard.ask();
      return lookOf(wanted, (each) =>
        'kind' in asked ? asked : seenOf(asked, each as PrometheusSignal),
      );
    },
    async close() {
      guard.close();
      client.close();
    },
  };
}

/** An age that this server cannot tell of these series is no reason to have no value; one that it fails to tell is. */
function refused(error: unknown): null {
  const { status = 0 } = error as { status?: number };
  if (status === 400 || status === 422) return null;
  throw error;
}

function agesOf({ series }: Answer): Map<number, number> {
  return new Map(
    series
      .map(({ labels, value }): [number, number] => [Number(labels.flyball ?? 0), Number(value)])
      .filter(([, age]) => Number.isFinite(age)),
  );
}

const COMBINED: Record<string, (values: number[]) => number> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  avg: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  min: (values) => values.reduce((low, value) => Math.min(low, value)),
  max: (values) => values.reduce((high, value) => Math.max(high, value)),
};

/** Exactly one number, or those of all series made one; series without a value (NaN) count in no aggregate. */
function oneNumber(series: Answer['series'], aggregate: string): number | Missing {
  const combine = COMBINED[aggregate];
  if (series.length > 1 && !combine) {
    const two = series.slice(0, 2).map(({ labels }) => JSON.stringify(labels).slice(0, 150));
    return missing(
      'ambiguous',
      `the query gives ${series.length} series (${two.join(', ')}, …), and one number is wanted. Write sum(…) or max(…), or give aggregate: 'max'.`,
    );
  }
  const values = series.map(({ value }) => numberOf(value));
  const infinite = values.find((value) => Math.abs(value) === Number.POSITIVE_INFINITY);
  if (infinite !== undefined) {
    const hint = 'a division by 0, or a quantile beyond the last bucket';
    return missing('not_finite', `the query gives ${infinite > 0 ? '+Inf' : '-Inf'}: ${hint}`);
  }
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) {
    const hint = '0 ÷ 0, or histogram_quantile() of a histogram that saw nothing';
    return missing('not_finite', `the query gives NaN: ${hint}`);
  }
  return combine ? combine(known) : known[0]!;
}
