/** The dashboard before more limiters than one look is at: which rows it tells the daemon of. */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { fleetKeys } from '../../src/redis/keys.js';
import { startApi, type TestApi } from '../support/api.js';
import { startChromium } from '../support/dashboard-stage.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { ROOT } from '../support/source-tree.js';

vi.setConfig({ testTimeout: 120_000 });
const names = Array.from({ length: 300 }, (_, i) => `many-${String(i).padStart(3, '0')}`);
let server: TestRedis;
let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  server = await startRedis();
  const registry = Object.fromEntries(names.map((name) => [name, '']));
  await server.client().hset(fleetKeys().limiters, registry);
  const dashboard = join(ROOT, 'dist/dashboard');
  api = await startApi(server.client(), { dashboard, watch: { everyMs: 1000 } });
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await api.close();
  await server.stop();
});

test('the rows in sight are told, and others once others are', async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(30_000);
  const told: string[][] = [];
  const statuses: number[] = [];
  page.on('response', (reply) => {
    if (!reply.url().endsWith('/stream/shown')) return;
    told.push(reply.request().postDataJSON().limiters);
    statuses.push(reply.status());
  });
  await page.goto(api.url);
  await expect.poll(() => told.at(-1)).toContain('many-000');
  expect(told.at(-1)!.length).toBeLessThan(100);
  await page.evaluate('scrollTo(0, document.body.scrollHeight)');
  await expect.poll(() => told.at(-1)).toContain('many-299');
  expect(told.at(-1)).not.toContain('many-000');
  await page.keyboard.press('/');
  await page.keyboard.type('many-123');
  await expect.poll(() => told.at(-1)).toEqual(['many-123']);
  // It is said again while they are in sight.
  const { length } = told;
  await expect.poll(() => told.length).toBeGreaterThan(length);
  expect(told.at(-1)).toEqual(['many-123']);
  expect(new Set(statuses)).toEqual(new Set([200]));
  // What stands in the box is found, drawn or not.
  for (let i = 0; i < 3; i++) await page.keyboard.press('Backspace');
  await page.keyboard.type('045');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toMatch(/#\/limiters\/many-045$/);
  await page.goBack();
  await expect.poll(() => told.at(-1)).toEqual(['many-045']);
  expect(page.url()).toContain('q=many-045');
  await page.close();
});
