/** Files of the dashboard, read whole at the start and served by their exact paths: no path of a request reaches the disk. Stage: api. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Hono } from 'hono';
import { checkHost } from './access.js';
import type { HostRule } from './hosts.js';
import { problemAnswer } from './problem.js';

/** Where the build puts them; from the sources alone there are none. */
const DASHBOARD_DIR = fileURLToPath(new URL('../../dist/dashboard', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  json: 'application/json; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
};

/** Nothing from elsewhere, nothing inline, in no frame. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

interface File {
  bytes: Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

/** Adds each file by its path, `index.html` also as `/`. @returns whether there is a dashboard */
export function mountStatic(app: Hono, hosts: HostRule, dir = DASHBOARD_DIR): boolean {
  const files = filesOf(dir);
  const index = files.get('/index.html');
  if (index !== undefined) files.set('/', index);
  for (const [path, { bytes, headers }] of files) {
    app.get(path, (c) => {
      try {
        checkHost(hosts, c.req.header('host'));
      } catch (error) {
        return problemAnswer(error);
      }
      const same = c.req.header('if-none-match') === headers.etag;
      return same ? new Response(null, { status: 304, headers }) : new Response(bytes, { headers });
    });
  }
  return index !== undefined;
}

function filesOf(dir: string): Map<string, File> {
  const files = new Map<string, File>();
  let names: string[];
  try {
    names = readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(dir.length).replaceAll('\\', '/'));
  } catch {
    return files;
  }
  for (const path of names) {
    const type = TYPES[path.split('.').at(-1) ?? ''];
    // What no page needs (maps, sources) is not handed out.
    if (type === undefined) continue;
    const bytes = new Uint8Array(readFileSync(join(dir, path)));
    const hash = createHash('sha256').update(bytes).digest('base64url');
    // Names that hold a hash of what is in them never change what they mean.
    const named = /[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/.test(path);
    files.set(path, {
      bytes,
      headers: {
        'content-type': type,
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': named ? 'public, max-age=31536000, immutable' : 'no-cache',
        etag: `"${hash}"`,
      },
    });
  }
  return files;
}
