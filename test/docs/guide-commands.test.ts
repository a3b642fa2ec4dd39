/** Each command that the guides of an incident show is run, and says what stands there; every mend of the troubleshooting guide mends. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { part, seen, settled, shownIn, writeGuide } from '../support/guide-run.js';
import { endScenes, SCENES } from '../support/guide-scenes.js';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';
import { read } from '../support/source-tree.js';

vi.setConfig({ testTimeout: 180_000 });

const GUIDES = ['docs/guides/on-call.md', 'docs/guides/troubleshooting.md'];
const home = process.cwd();
const dir = mkdtempSync(join(tmpdir(), 'flyball-guide-'));
let server: TestRedis;
let redis: Redis;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  env = { FLYBALL_REDIS_URL: server.url, FLYBALL_DATA_DIR: join(dir, 'none') };
  mkdirSync(join(dir, 'broken'));
  writeFileSync(
    join(dir, 'broken/checkout.ts'),
    `import { definePolicy, telemetry } from 'flyball';

export default definePolicy({
  limiter: { name: 'checkout', rate: 100, capacity: 200 },
  signals: { p95: telemetry.latency('p95') },
  objective: { p59: { below: '250ms' } },
});
`,
  );
  process.chdir(dir);
});
afterAll(async () => {
  await endScenes();
  process.chdir(home);
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

test.each(GUIDES)('%s: each command says what it shows', async (path) => {
  const shown = shownIn(path);
  expect(shown.length).toBeGreaterThan(6);
  const said: string[] = [];
  for (const { scene, exit, args, command, output, only } of shown) {
    let at = env;
    if (scene !== '') await endScenes();
    if (scene === 'away')
      at = { ...env, FLYBALL_REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
    else if (scene !== '') {
      expect(Object.keys(SCENES), command).toContain(scene);
      await redis.config('SET', 'maxmemory', '0');
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      await SCENES[scene]!(redis, env);
    }
    const { code, text } = await seen(args, at);
    expect(`${command}: exit ${code}`, text).toBe(`${command}: exit ${exit}`);
    const now = part(text, only);
    said.push(now);
    if (process.env.WRITE_GUIDES === undefined) {
      expect(settled(now), command).toBe(settled(output));
    }
  }
  if (process.env.WRITE_GUIDES !== undefined) writeGuide(path, said);
});

/** Run for as long as its scene lasts. */
const BY_A_SCENE = ['flyball run policies/'];

test('what troubleshooting names in a sentence is run too, whole or as the beginning of what is', () => {
  const [, path] = GUIDES;
  const run = [...shownIn(path!).map(({ command }) => command), ...BY_A_SCENE];
  const prose = read(path!).replace(/```[\s\S]*?```/g, '');
  const named = [...prose.matchAll(/`(flyball [^`]+)`/g)].map(([, command]) => command!);
  expect(named.length).toBeGreaterThan(2);
  for (const command of named) {
    expect([command, run.some((each) => `${each} `.startsWith(`${command} `))]).toEqual([
      command,
      true,
    ]);
  }
});
