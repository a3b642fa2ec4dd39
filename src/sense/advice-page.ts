/** Why a /metrics page has no such series: which names and labels it has. For people; never in a tick. Stage: sense. */
import { fewOf, namesLike } from './advice-names.js';
import { createHttpClient } from './http-get.js';
import { targetOf } from './http-target.js';
import { parsePage } from './scrape-parse.js';
import { type ScrapeSignal, sampleNames } from './scrape-reading.js';

const DEADLINE_MS = 5_000;
const NAME = /^[a-zA-Z_:][\w:]*/;

/** One sentence, or null when the page has what was asked for. */
export async function advisePage(
  signal: ScrapeSignal,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const found = targetOf(signal, env);
  if ('kind' in found) return null;
  const client = createHttpClient(found.target, { accept: 'text/plain', reuse: false });
  try {
    const { text } = await client.get(found.target.url, AbortSignal.timeout(DEADLINE_MS));
    return adviseText(signal, text);
  } finally {
    client.close();
  }
}

export function adviseText(signal: ScrapeSignal, text: string): string | null {
  const wanted = sampleNames(signal);
  const names = new Set(text.split('\n').flatMap((line) => NAME.exec(line)?.[0] ?? []));
  if (!wanted.some((name) => names.has(name))) {
    const families = [
      ...new Set([...names].map((name) => name.replace(/_(bucket|count|sum)$/, ''))),
    ];
    if (names.has(`${signal.metric}_count`)) {
      return `${signal.metric} is a histogram or a summary: read it with scrape.quantile or scrape.mean.`;
    }
    if (names.has(signal.metric)) {
      return `${signal.metric} is no histogram: read it with scrape.gauge, or scrape.rate if it counts.`;
    }
    const like = namesLike(signal.metric, families);
    const mean =
      like.length === 0
        ? `Of its ${names.size} names none is like it.`
        : `Did you mean ${like.join(', ')}?`;
    return `The page has no metric ${signal.metric}. ${mean}`;
  }
  const page = parsePage(text, false, new Set(wanted));
  const samples = wanted.flatMap((name) => page.samples.get(name) ?? []);
  for (const [label, values] of Object.entries(signal.labels ?? {})) {
    const allowed = typeof values === 'string' ? [values] : values;
    const there = new Set(samples.map(({ labels }) => labels[label] ?? ''));
    if (allowed.some((value) => there.has(value))) continue;
    const known = [...there].filter((value) => value !== '').sort();
    if (known.length > 0) {
      return `No series of ${signal.metric} has ${label}=${allowed.map((value) => JSON.stringify(value)).join(' or ')}: its values of ${label} are ${fewOf(known)}.`;
    }
    const labels = [...new Set(samples.flatMap((sample) => Object.keys(sample.labels)))];
    return `${signal.metric} has no label ${label}: ${labels.length === 0 ? 'it has none' : `it has ${labels.join(', ')}`}.`;
  }
  return null;
}
