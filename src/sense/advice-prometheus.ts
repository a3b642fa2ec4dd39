/** Why a PromQL expression finds nothing: asks the server which names and labels there are. For people; never in a tick. Stage: sense. */
import { fewOf, namesLike } from './advice-names.js';
import { createHttpClient, type HttpClient } from './http-get.js';
import { type HttpSignal, targetOf } from './http-target.js';
import { selectorsOf } from './promql-selectors.js';

const DEADLINE_MS = 5_000;
const MATCHER = /([a-zA-Z_][\w.]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)/g;

/** One sentence for the first selector that finds nothing, or null when that is not the fault. */
export async function adviseQuery(
  signal: Extract<HttpSignal, { source: 'prometheus' }>,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const found = targetOf(signal, env);
  if ('kind' in found) return null;
  const client = createHttpClient(found.target, { accept: 'application/json', reuse: true });
  const api = createApi(client, found.target.url);
  try {
    for (const selector of selectorsOf(signal.query)) {
      const advice = await adviseSelector(selector, api);
      if (advice !== null) return advice;
    }
    return null;
  } finally {
    client.close();
  }
}

interface Api {
  /** Labels of each series that an expression gives now. */
  series(query: string): Promise<Record<string, string>[]>;
  names(): Promise<string[]>;
}

async function adviseSelector(selector: string, api: Api): Promise<string | null> {
  if ((await api.series(`count(${selector})`)).length > 0) return null;
  const name = /^[a-zA-Z_:][\w:]*/.exec(selector)?.[0];
  if (name === undefined) return `No series match ${selector}.`;
  if ((await api.series(`count(${name})`)).length === 0) {
    const like = namesLike(name, await api.names());
    if (like.includes(name))
      return `${name} has had samples, but has none now: is its target down?`;
    const mean =
      like.length === 0
        ? 'Nor is there one like it: is its target scraped?'
        : `Did you mean ${like.join(', ')}?`;
    return `There is no metric ${name}. ${mean}`;
  }
  for (const [matcher, label] of selector.matchAll(MATCHER)) {
    if ((await api.series(`count(${name}{${matcher}})`)).length > 0) continue;
    const groups = await api.series(`group by (${label}) (${name})`);
    const values = groups.map((labels) => labels[label!] ?? '').filter((value) => value !== '');
    if (values.length > 0) {
      return `No series of ${name} has ${matcher}: its values of ${label} are ${fewOf(values.sort())}.`;
    }
    const [one = {}] = await api.series(`topk(1, ${name})`);
    const labels = Object.keys(one).filter((each) => each !== '__name__');
    const has = labels.length === 0 ? 'it has none' : `it has ${labels.join(', ')}`;
    return `${name} has no label ${label}: ${has}.`;
  }
  return `Each condition of ${selector} is met by some series, but none meets all of them.`;
}

function createApi(client: HttpClient, base: URL): Api {
  async function get(path: string, parameters: Record<string, string>): Promise<unknown> {
    const url = new URL(base);
    url.pathname = `${base.pathname.replace(/\/+$/, '')}/api/v1/${path}`;
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
    const { text } = await client.get(url, AbortSignal.timeout(DEADLINE_MS));
    return (JSON.parse(text) as { data?: unknown }).data;
  }
  return {
    async series(query) {
      const data = (await get('query', { query })) as {
        result?: { metric?: Record<string, string> }[];
      };
      return (data?.result ?? []).map(({ metric = {} }) => metric);
    },
    async names() {
      const data = await get('label/__name__/values', {});
      return Array.isArray(data) ? data.map(String) : [];
    },
  };
}
