/** The dashboard's files, served as they were built: from memory, by exact name, with nothing from elsewhere. Stage: report. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Hono } from 'hono';

/** Beside this file once it is built: `dist/dashboard`. */
const BUILT = fileURLToPath(new URL('../dashboard', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** No script, style or picture but our own files; no frame around it; no form that leaves. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

interface Served {
  plain: Buffer;
  zipped: Buffer;
  headers: Record<string, string>;
}

/** Adds `/` and `/assets/…` to an app. Whatever is asked for is looked up by its exact name: there is no path to trick. */
export function mountDashboard(app: Hono, folder: string = BUILT): void {
  let files: Promise<Map<string, Served>> | undefined;
  const find = async (path: string) => {
    files ??= readAll(folder);
    return (await files).get(path);
  };
  const answer = async (path: string, encodings: string): Promise<Response> => {
    const file = await find(path);
    if (file === undefined) {
      const why =
        path === '/'
          ? 'The dashboard is not part of this build: npm run build makes it.\n'
          : 'Not found.\n';
      return new Response(why, { status: 404, headers: { 'content-type': TYPES['.txt']! } });
    }
    const zip = /\bgzip\b/.test(encodings);
    return new Response(new Uint8Array(zip ? file.zipped : file.plain), {
      headers: { ...file.headers, ...(zip ? { 'content-encoding': 'gzip' } : {}) },
    });
  };
  app.get('/', (c) => answer('/', c.req.header('accept-encoding') ?? ''));
  app.get('/assets/:name', (c) =>
    answer(`/assets/${c.req.param('name')}`, c.req.header('accept-encoding') ?? ''),
  );
}

async function readAll(folder: string): Promise<Map<string, Served>> {
  const files = new Map<string, Served>();
  if (!existsSync(join(folder, 'index.html'))) return files;
  files.set('/', await served(join(folder, 'index.html'), 'no-cache'));
  for (const name of readdirSync(join(folder, 'assets'))) {
    // The name holds the hash of what is in it, so what was once read stays right.
    const kept = await served(join(folder, 'assets', name), 'public, max-age=31536000, immutable');
    files.set(`/assets/${name}`, kept);
  }
  return files;
}

async function served(path: string, cache: string): Promise<Served> {
  const plain = readFileSync(path);
  const zipped = await promisify(gzip)(plain, { level: 9 });
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  const headers = {
    ...HEADERS,
    'content-type': type,
    'cache-control': cache,
    vary: 'accept-encoding',
  };
  return { plain, zipped, headers };
}
