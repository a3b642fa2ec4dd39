/** Characters that may reach no terminal, log or chat raw, whoever sent them. Stage: sense, report, cli. */

/** C0, DEL, C1, soft hyphen, zero-width and direction marks, line and paragraph separators. */
export const UNSAFE = /[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** JSON on a line or several, with them as escapes: it means the same, and only its own line breaks are obeyed. */
export function inertLine(json: string): string {
  return json.replace(UNSAFE, (char) =>
    char === '\n' ? char : `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}
