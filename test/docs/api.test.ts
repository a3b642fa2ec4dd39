/** The document of the API is the one that the code makes, and the guide's commands do what it says. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/api/openapi.js';
import { routes } from '../../src/api/routes.js';
import { streamRoute } from '../../src/api/stream.js';
import { createLimiter } from '../../src/index.js';
import { daemonSetup, policyText, until } from '../support/daemon.js';
import { startRedis } from '../support/redis-server.js';
import { ROOT, read } from '../support/source-tree.js';

test('docs/openapi.json is what the table of routes gives', () => {
  // `FLYBALL_UPDATE=1 npx vitest run test/docs/api.test.ts` writes it anew.
  const fresh = `${JSON.stringify(openApiDocument([...routes, streamRoute]), null, 2)}\n`;
  const file = join(ROOT, 'docs/openapi.json');
  if (process.env.FLYBALL_UPDATE === '1') writeFileSync(file, fresh);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(fresh));
});

test('each operation has a name of its own, and each role is one of three', () => {
  const all = [...routes, streamRoute];
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  const changing = all.filter(
    ({ method, changesNothing }) => method !== 'get' && changesNothing !== true,
  );
  const free = changing.filter(({ role }) => role === null).map(({ path }) => path);
  expect(new Set(free)).toEqual(new Set(['/session']));
  expect(changing.some(({ role }) => role === 'reader')).toBe(false);
});

test('the commands of docs/api.md work as they stand', async () => {
  const server = await startRedis();
  const setup = daemonSetup(server.url);
  try {
    setup.write('checkout.ts', policyText());
    const daemon = setup.start();
    const address = await daemon.http();
    await until('the limiter', async () => {
      const reply = await fetch(`${address}/api/v1/limiters/checkout`);
      return reply.status === 200;
    });
    await createLimiter({ name: 'checkout', redis: server.client() }).close();
    const blocks = [...read('docs/api.md').matchAll(/```sh\n([\s\S]*?)```/g)]
      .map(([, text]) => text!)
      .filter((text) => text.includes('localhost:9464'));
    expect(blocks.length).toBeGreaterThan(3);
    const script = blocks.join('\n').replaceAll('localhost:9464', new URL(address).host);
    const { code, out } = await shell(`set -eu\n${script}`, setup.dir);
    expect([code, out.includes('"status":4'), out.includes('"status":5')]).toEqual([
      0,
      false,
      false,
    ]);
    expect(out).toContain('"verb":"rollback","status":"done"');
    expect(out).toContain('"verb":"release","status":"dry_run"');
    expect(out).toContain('event: snapshot');
  } finally {
    await setup.close();
    await server.stop();
  }
});

function shell(script: string, cwd: string): Promise<{ code: number; out: string }> {
  const child = spawn('bash', ['-c', script], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  return new Promise((ok, no) => {
    child.once('error', no);
    child.once('close', (code) => ok({ code: code ?? -1, out }));
  });
}
