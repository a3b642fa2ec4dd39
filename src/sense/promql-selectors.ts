/** The series a PromQL expression reads, so that their age can be asked for. Pure. Stage: sense. */

/** Words that may stand where a metric's name may, and are none. */
const WORDS = new Set(
  'and or unless atan2 by without on ignoring group_left group_right bool offset inf nan start end'.split(
    ' ',
  ),
);
/** What a list of labels follows, not an expression. */
const LABELS_FOLLOW = /^(by|without|on|ignoring|group_left|group_right)$/i;
const MOST = 8;

const TOKEN =
  /\s+|#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[a-zA-Z_:][a-zA-Z0-9_:]*|\d[\w.]*|[\s\S]/g;

/**
 * Its selectors as they stand, each once, without ranges and offsets: `rate(x{a="b"}[1m] offset 1h)` reads `x{a="b"}`.
 * What is no PromQL gives none or nonsense: the server says so when it is asked.
 */
export function selectorsOf(query: string): string[] {
  const tokens = (query.match(TOKEN) ?? []).filter((token) => !/^(\s|#)/.test(token));
  const found = new Set<string>();
  /** The index after the bracket that closes the one at `from`. */
  const closing = (from: number): number => {
    let depth = 0;
    for (let at = from; at < tokens.length; at++) {
      if (/^[([{]$/.test(tokens[at]!)) depth += 1;
      else if (/^[)\]}]$/.test(tokens[at]!)) depth -= 1;
      if (depth === 0) return at + 1;
    }
    return tokens.length;
  };
  for (let at = 0; at < tokens.length; ) {
    const token = tokens[at]!;
    const next = tokens[at + 1];
    if (token === '[') at = closing(at);
    else if (token === '{') {
      const end = closing(at);
      found.add(tokens.slice(at, end).join(''));
      at = end;
    } else if (!/^[a-zA-Z_:]/.test(token)) at += 1;
    else if (next === '(') at = LABELS_FOLLOW.test(token) ? closing(at + 1) : at + 1;
    else if (WORDS.has(token.toLowerCase()) || isAggregation(token, next)) at += 1;
    else {
      const end = next === '{' ? closing(at + 1) : at + 1;
      found.add(tokens.slice(at, end).join(''));
      at = end;
    }
  }
  return [...found].slice(0, MOST);
}

/** `sum by (le) (…)`: the name of the aggregation stands before its labels. */
function isAggregation(token: string, next: string | undefined): boolean {
  return next !== undefined && /^(by|without)$/i.test(next) && /^[a-z_]+$/.test(token);
}

/**
 * A query for the age in seconds of the newest sample of each selector, labelled with its place in the list. Both
 * times are the server's own, so no clocks are compared. Selectors without series are absent.
 */
export function ageQuery(selectors: readonly string[]): string {
  return selectors
    .map((of, i) => `label_replace(time() - max(timestamp(${of})), "flyball", "${i}", "", "")`)
    .join(' or ');
}
