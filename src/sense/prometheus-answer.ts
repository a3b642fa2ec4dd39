/** One instant query of the HTTP API of Prometheus, and what of its answer can be numbers. Stage: sense. */
import { z } from 'zod';
import { type HttpClient, HttpFault } from './http-get.js';
import { statusFault } from './http-target.js';

const answerSchema = z.object({
  status: z.enum(['success', 'error']),
  errorType: z.string().optional(),
  error: z.string().optional(),
  warnings: z.array(z.string()).optional(),
  /** VictoriaMetrics: some of its storage nodes did not answer. */
  isPartial: z.boolean().optional(),
  data: z.object({ resultType: z.string(), result: z.unknown() }).optional(),
});
const point = z.tuple([z.number(), z.string()]);
const vector = z.array(
  z.object({ metric: z.record(z.string(), z.string()), value: point.optional() }),
);

export interface Answer {
  series: { labels: Record<string, string>; seconds: number; value: string }[];
  warnings: string[];
}

export async function instant(
  client: HttpClient,
  base: URL,
  query: string,
  over: AbortSignal,
): Promise<Answer> {
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/+$/, '')}/api/v1/query`;
  url.searchParams.set('query', query);
  const { status, text } = await client.get(url, over);
  const parsed = answerSchema.safeParse(json(text));
  if (!parsed.success) {
    if (status !== 200) throw statusFault(status);
    throw new HttpFault('error', 'its answer is not that of a Prometheus API. Is the path right?');
  }
  const { error, data, isPartial, warnings = [] } = parsed.data;
  if (parsed.data.status === 'error' || status !== 200 || data === undefined) {
    if (parsed.data.errorType === 'bad_data') {
      throw new HttpFault('error', `it refuses the query: ${error}`, status);
    }
    throw status === 200 ? new HttpFault('error', `it says: ${error}`) : statusFault(status, error);
  }
  if (isPartial) warnings.push('its answer is of some of its storage nodes only (isPartial)');
  return { series: seriesOf(data), warnings };
}

function seriesOf({
  resultType,
  result,
}: {
  resultType: string;
  result: unknown;
}): Answer['series'] {
  if (resultType === 'scalar') {
    const [seconds, value] = shaped(point, result);
    return [{ labels: {}, seconds, value }];
  }
  if (resultType !== 'vector') {
    const mend =
      resultType === 'matrix'
        ? 'Take the range ([1m]) into a function: rate(…[1m]).'
        : 'Write an expression that gives a number.';
    throw new HttpFault('error', `the query gives a ${resultType}, not numbers. ${mend}`);
  }
  return shaped(vector, result).map(({ metric, value }) => {
    if (!value) throw new HttpFault('error', 'the query gives histograms, not numbers');
    return { labels: metric, seconds: value[0], value: value[1] };
  });
}

function shaped<T>(schema: z.ZodType<T>, result: unknown): T {
  const parsed = schema.safeParse(result);
  if (!parsed.success) throw new HttpFault('error', 'its result has not the form of the API');
  return parsed.data;
}

/** As the API writes it: `+Inf` is no number of JavaScript's. */
export function numberOf(text: string): number {
  if (/^[+]?inf$/i.test(text)) return Number.POSITIVE_INFINITY;
  if (/^-inf$/i.test(text)) return Number.NEGATIVE_INFINITY;
  return text.trim() === '' ? Number.NaN : Number(text);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
