/** `fair: true` on processes that share one limit: a heavy subject is spread over them, light ones are not refused for it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { adopt } from '../../src/actuate/adopt.js';
import { flyball } from '../../src/enforce/middleware/http.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { sdkBench } from '../support/sdk-limiters.js';

const SCRIPT = fileURLToPath(new URL('../support/fair-process.mjs', import.meta.url));
const bench = sdkBench('fair');
const ends: (() => unknown)[] = [];
beforeEach(() => bench.admin.flushall());
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** Each subject may take all of it, as far as its own bucket goes. */
async function adopted(
  name: string,
  limiter: Partial<PolicyInput['limiter']> = {},
  mode: 'auto' | 'recommend' | 'shadow' = 'recommend',
): Promise<void> {
  const perSubject = { subject: 'user:{userId}', rate: 1_000, capacity: 1_000 };
  const policy = policySchema.parse({
    limiter: { name, rate: 100, capacity: 60, perSubject, fair: true, ...limiter },
    ...(mode === 'auto' ? { bounds: { rate: { min: 10, max: 100 } } } : {}),
    mode,
  });
  const file = { file: `${name}.ts`, policy, hash: policyHash(policy), json: policyJson(policy) };
  const actor = { kind: 'autopilot', name: 'd1' } as const;
  const outcome = await adopt(bench.admin, file, { actor, leaseMs: 60_000, nowMs: Date.now() });
  expect(outcome.status).toBe('created');
}

type Tallies = Record<
  string,
  { offered: number; admitted: number; reasons: Record<string, number> }
>;

async function service(name: string, load: Record<string, number>, ms: number): Promise<Tallies> {
  const args = [SCRIPT, bench.server.url, name, JSON.stringify(load), String(ms)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (part) => {
    out += part;
  });
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  return JSON.parse(out);
}

test('three processes: the heavy subject in all of them, the light ones each in one; the light ones are not refused', async () => {
  await adopted('fleet');
  const lights = (from: number) =>
    Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`light:${from + i}`, 2]));
  const all = await Promise.all(
    [0, 7, 14].map((from) => service('fleet', { heavy: 150, ...lights(from) }, 4_000)),
  );
  const total = { light: 0, lightDenied: 0, heavy: 0 };
  const why = new Set<string>();
  for (const tallies of all) {
    for (const [name, { offered, admitted, reasons }] of Object.entries(tallies)) {
      if (name === 'heavy') {
        total.heavy += admitted;
        for (const reason of Object.keys(reasons)) why.add(reason);
      } else {
        total.light += offered;
        total.lightDenied += offered - admitted;
      }
    }
  }
  expect(total.light).toBeGreaterThan(100);
  // Only those that came before the first refusal told that the limit binds.
  expect(total.lightDenied / total.light).toBeLessThan(0.03);
  expect(why).toContain('fair_share');
  expect(total.heavy).toBeGreaterThan(150);
});

test('over HTTP: who is above its share is told so with 429, the others pass; the counts carry the reason', async () => {
  await adopted('http', { rate: 5, capacity: 10 });
  const limiter = bench.limiter({ name: 'http' });
  await limiter.ready();
  const guard = flyball(limiter, {
    attributes: (req: { headers: NodeJS.Dict<string | string[]> }) => ({
      userId: String(req.headers['x-user']),
    }),
  });
  const http = createServer(guard.wrap((_req, res) => res.end('ok')));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  ends.push(() => http.close());
  const { port } = http.address() as { port: number };
  const ask = (user: string) => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': user } });
  let denied: Response | null = null;
  const deadline = performance.now() + 15_000;
  while (denied === null && performance.now() < deadline) {
    const answer = await ask('heavy');
    await ask('light');
    if (answer.status === 429) denied = answer;
    else await answer.arrayBuffer();
  }
  expect(denied?.status).toBe(429);
  expect(await denied!.json()).toMatchObject({
    limit: 'rate',
    reason: 'fair_share',
    title: 'Too many requests',
    detail: expect.stringContaining('above its fair share while others are refused'),
  });
  expect(Number(denied!.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await ask('newcomer')).status).toBe(200);
  expect(limiter.stats().denied.fair_share).toBeGreaterThan(0);
});

test('in shadow it is only told: all are admitted', async () => {
  await adopted('shadow', { rate: 5, capacity: 10 }, 'shadow');
  const limiter = bench.limiter({ name: 'shadow' });
  await limiter.ready();
  const seen = new Set<string>();
  const deadline = performance.now() + 15_000;
  while (!seen.has('fair_share') && performance.now() < deadline) {
    for (const subject of ['heavy', 'light']) {
      const decision = await limiter.take(subject);
      expect(decision.allowed).toBe(true);
      if (!decision.wouldAllow) seen.add(decision.reason);
    }
  }
  expect([...seen]).toContain('fair_share');
  expect(limiter.stats().wouldDeny.fair_share).toBeGreaterThan(0);
});

test('a policy in force that is made fair, and unfair again, is followed by the next take', async () => {
  const perSubject = { subject: 'user:{userId}', rate: 1_000, capacity: 1_000 };
  const make = async (fair: boolean) => {
    const policy = policySchema.parse({
      limiter: { name: 'turns', rate: 1, capacity: 4, perSubject, ...(fair ? { fair } : {}) },
    });
    const file = { file: 'turns.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
    const actor = { kind: 'autopilot', name: 'd1' } as const;
    await adopt(bench.admin, file, { actor, leaseMs: 60_000, nowMs: Date.now() });
  };
  const owed = () => bench.admin.exists('flyball:{turns}:owed');
  await make(false);
  const limiter = bench.limiter({ name: 'turns', denyCache: false });
  const many = async () => {
    for (let i = 0; i < 6; i++) await limiter.take(`user:${i % 2}`);
  };
  await many();
  expect(await owed()).toBe(0);
  await make(true);
  await many();
  expect(await owed()).toBe(1);
  await bench.admin.del('flyball:{turns}:owed');
  await make(false);
  await many();
  expect(await owed()).toBe(0);
});
