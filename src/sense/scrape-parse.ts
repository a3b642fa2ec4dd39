/** The text of a /metrics page → the series that are wanted of it; Prometheus' text format and OpenMetrics. Pure. Stage: sense. */

export interface Sample {
  labels: Record<string, string>;
  value: number;
  /** Wall ms of the server's clock, where the page says one. */
  timestampMs: number | null;
}

export interface Page {
  /** The names that were looked for. */
  wanted: ReadonlySet<string>;
  /** By the full name of the sample (`x_bucket`); of the wanted names only. */
  samples: Map<string, Sample[]>;
  /** What the page says of each family: counter, gauge, histogram, summary. */
  types: Map<string, string>;
  /** Some of its counters, by name and labels as they stand: what tells one process from another. */
  counters: Map<string, number>;
  /** `process_start_time_seconds`. */
  startS: number | null;
}

export class PageFault extends Error {}

/** More would not tell more, and a page is kept from one look to the next. */
const MOST_COUNTERS = 400;
const MOST_SERIES = 20_000;
/** Of one line: labels of megabytes would hold up everything else. */
const LONGEST_LINE = 100_000;

export function parsePage(text: string, openMetrics: boolean, wanted: ReadonlySet<string>): Page {
  const page: Page = {
    wanted,
    samples: new Map(),
    types: new Map(),
    counters: new Map(),
    startS: null,
  };
  const stands = new Set<string>();
  let series = 0;
  let ended = false;
  let lineNumber = 0;
  for (let from = 0; from < text.length; ) {
    const newline = text.indexOf('\n', from);
    const to = newline === -1 ? text.length : newline;
    const line = text.slice(from, text.charCodeAt(to - 1) === 13 ? to - 1 : to);
    from = to + 1;
    lineNumber += 1;
    if (line.charCodeAt(0) === 35) {
      if (line === '# EOF') ended = true;
      else if (line.startsWith('# TYPE ')) {
        const [, , name = '', type = ''] = line.split(/\s+/);
        page.types.set(unquoted(name), type);
      }
      continue;
    }
    if (line === '' || line.trim() === '') continue;
    if (line.length > LONGEST_LINE) {
      throw new PageFault(`line ${lineNumber} is longer than ${LONGEST_LINE / 1000} kB`);
    }
    const parts = partsOf(line);
    if (parts === null) {
      throw new PageFault(`line ${lineNumber} is no metric (${JSON.stringify(line.slice(0, 60))})`);
    }
    const { name, key, rest } = parts;
    const isWanted = wanted.has(name);
    const counts = page.counters.size < MOST_COUNTERS && isCounter(name, page.types);
    if (!isWanted && !counts && name !== 'process_start_time_seconds') continue;
    const read = readValue(rest, openMetrics);
    if (read === null) {
      throw new PageFault(`line ${lineNumber} has no value (${JSON.stringify(line.slice(-60))})`);
    }
    if (name === 'process_start_time_seconds') page.startS = read.value;
    if (counts) page.counters.set(key, read.value);
    if (!isWanted) continue;
    if (stands.has(key)) {
      throw new PageFault(`line ${lineNumber} repeats a series: ${key.slice(0, 60)}`);
    }
    stands.add(key);
    series += 1;
    if (series > MOST_SERIES) {
      throw new PageFault(`more than ${MOST_SERIES} series of what is wanted: give labels`);
    }
    const found = page.samples.get(name) ?? [];
    found.push({ labels: labelsOf(key, lineNumber), ...read });
    page.samples.set(name, found);
  }
  // OpenMetrics ends with a mark, so that half a page is known for one.
  if (openMetrics && !ended) throw new PageFault('the page breaks off: its # EOF is missing');
  return page;
}

/** Counters by what the page says, or by their name where it says nothing. */
function isCounter(name: string, types: ReadonlyMap<string, string>): boolean {
  const cut = /_(total|bucket|count)$/.exec(name);
  const own = types.get(name);
  if (own !== undefined) return own === 'counter';
  if (cut === null) return false;
  const family = types.get(name.slice(0, cut.index));
  if (cut[1] === 'total') return family === undefined || family === 'counter';
  return family === 'histogram' || (family === 'summary' && cut[1] === 'count');
}

/** `name{labels} rest`, or in the newer form `{"name", labels} rest`. */
function partsOf(line: string): { name: string; key: string; rest: string } | null {
  const head = /^[a-zA-Z_:][a-zA-Z0-9_:.]*/.exec(line)?.[0] ?? '';
  if (line.charCodeAt(head.length) !== 123) {
    return head === '' ? null : { name: head, key: head, rest: line.slice(head.length) };
  }
  let quoted = false;
  for (let at = head.length + 1; at < line.length; at++) {
    const char = line.charCodeAt(at);
    if (char === 92 && quoted) at += 1;
    else if (char === 34) quoted = !quoted;
    else if (char === 125 && !quoted) {
      const key = line.slice(0, at + 1);
      const name = head || /^\{\s*"((?:[^"\\]|\\.)*)"\s*(?=[,}])/.exec(key)?.[1];
      return name === undefined ? null : { name, key, rest: line.slice(at + 1) };
    }
  }
  return null;
}

/** ` 1.5`, ` 1.5 1700000000000`, ` 1.5 # {trace_id="…"} 0.4`. */
function readValue(
  rest: string,
  openMetrics: boolean,
): { value: number; timestampMs: number | null } | null {
  const found = /^[ \t]+(\S+)(?:[ \t]+(-?[\d.eE+]+))?[ \t]*(?:#.*)?$/.exec(rest);
  if (found === null) return null;
  const value = numberOf(found[1]!);
  if (value === null) return null;
  const at = found[2] === undefined ? null : Number(found[2]) * (openMetrics ? 1000 : 1);
  return { value, timestampMs: at !== null && Number.isFinite(at) ? at : null };
}

function numberOf(text: string): number | null {
  if (/^nan$/i.test(text)) return Number.NaN;
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text);
  if (infinite) {
    return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : null;
}

const LABEL = /(?:([a-zA-Z_][a-zA-Z0-9_.:]*)|"((?:[^"\\]|\\.)*)")\s*=\s*"((?:[^"\\]|\\.)*)"/y;
const BETWEEN = /\s*,?\s*/y;

function labelsOf(key: string, lineNumber: number): Record<string, string> {
  const labels = Object.create(null) as Record<string, string>;
  const open = key.indexOf('{');
  if (open === -1) return labels;
  let at = open + 1;
  // In the newer form the name stands in the braces too.
  const named = open === 0 ? /^\{\s*"(?:[^"\\]|\\.)*"\s*,?\s*/.exec(key) : null;
  if (named) at = named[0].length;
  for (;;) {
    BETWEEN.lastIndex = at;
    at += BETWEEN.exec(key)?.[0].length ?? 0;
    if (at >= key.length - 1) return labels;
    LABEL.lastIndex = at;
    const found = LABEL.exec(key);
    if (found === null) throw new PageFault(`line ${lineNumber} has labels that are none`);
    labels[found[1] ?? unescaped(found[2]!)] = unescaped(found[3]!);
    at += found[0].length;
  }
}

function unescaped(text: string): string {
  return text.replace(/\\([\\"n])/g, (_all, char: string) => (char === 'n' ? '\n' : char));
}

function unquoted(name: string): string {
  return name.startsWith('"') ? unescaped(name.slice(1, -1)) : name;
}
