/** Redis and databases that a compose file runs, and the port of this machine that leads to each; other YAML is left unread. Pure. Stage: cli. */

export interface ComposeService {
  name: string;
  kind: 'redis' | 'postgres' | 'mysql';
  /** null: it is not published. */
  port: number | null;
}

const IMAGES: readonly [RegExp, ComposeService['kind'], number][] = [
  [/^(redis|valkey)/, 'redis', 6379],
  [/^(postgres|postgis|pgvector|timescale)/, 'postgres', 5432],
  [/^(mysql|mariadb|percona)/, 'mysql', 3306],
];

/** Services by their indentation; what a file says in flow style or by anchors is not seen. */
export function composeServices(text: string): ComposeService[] {
  return blocks(text).flatMap(({ name, lines }) => {
    const image = lines.map((line) => /^image\s*:\s*["']?([^"'\s]+)/.exec(line)?.[1]).find(Boolean);
    // `ghcr.io/valkey-io/valkey:8` → `valkey:8`.
    const last = image?.split('/').pop() ?? '';
    const [, kind, inside] = IMAGES.find(([pattern]) => pattern.test(last)) ?? [];
    if (kind === undefined) return [];
    const ports = lines.map((line) =>
      /^-\s*["']?(?:[\d.]+:)?(\d+):(\d+)(?:\/tcp)?["']?$/.exec(line),
    );
    const published = ports.find((port) => Number(port?.[2]) === inside)?.[1];
    return [{ name, kind, port: published === undefined ? null : Number(published) }];
  });
}

/** What stands below each name of `services:`, without its indentation. */
function blocks(text: string): { name: string; lines: string[] }[] {
  const found: { name: string; lines: string[] }[] = [];
  let inServices = false;
  let width: number | null = null;
  for (const line of text.split(/\r?\n/)) {
    const word = line.trim();
    if (word === '' || word.startsWith('#')) continue;
    const indent = line.length - line.trimStart().length;
    if (indent === 0) {
      inServices = /^services\s*:/.test(word);
      width = null;
    } else if (inServices) {
      width ??= indent;
      const name = word.replace(/\s*:.*$/, '').replace(/^["']|["']$/g, '');
      if (indent === width) found.push({ name, lines: [] });
      else found.at(-1)?.lines.push(word);
    }
  }
  return found;
}
