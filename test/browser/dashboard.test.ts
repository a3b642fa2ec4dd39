/** The dashboard in a real browser, on a daemon as it ships, a real Redis and services under load. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries } from '../../src/actuate/audit.js';
import { until } from '../support/daemon.js';
import { type DashboardStage, dashboardStage, HOSTILE } from '../support/dashboard-stage.js';

vi.setConfig({ testTimeout: 180_000 });
let stage: DashboardStage;

beforeAll(async () => {
  stage = await dashboardStage();
  // Something to roll back, by a person whose words are hostile.
  const { page, context } = await stage.open();
  await go(page, '#/limiters/search');
  await page.getByRole('button', { name: 'Pin…' }).waitFor();
  await context.close();
  for (const rate of [50, 90]) {
    const dry = (await stage.verb('search', 'pin', { rate, dryRun: true })) as { basis: string };
    // Pictures are for people.
    const reason = process.env.SUITE_SCREENSHOTS ? 'the index is rebuilt' : HOSTILE.markup;
    await stage.verb('search', 'pin', { rate, basis: dry.basis, reason });
  }
}, 300_000);
afterAll(() => stage.close());

const params = async (name: string) => (await readParams(stage.server.client(), { name })).params!;
const go = (page: Page, hash: string) => page.goto(`${stage.url}/${hash}`);
const focused = (page: Page) => page.evaluate('document.activeElement?.tagName');
const state = (page: Page) => page.locator('.age').getAttribute('data-state');

test('the overview: found, sorted, opened by keys; the title says what is wrong', async () => {
  const { page, context, faults } = await stage.open();
  await go(page, '#/');
  await expect.poll(() => page.locator('tr.row').count()).toBe(4);
  await page.keyboard.press('/');
  await page.keyboard.type('chec');
  await expect.poll(() => page.locator('tr.row').count()).toBe(1);
  expect(page.url()).toContain('q=chec');
  await page.keyboard.press('Escape');
  await expect.poll(() => page.locator('tr.row').count()).toBe(4);

  await page.getByRole('button', { name: 'Limiter', exact: true }).click();
  const names = () => page.locator('tr.row .name a bdi.clip').allTextContents();
  await expect.poll(names).toEqual(['checkout', 'payments', 'reports', 'search']);
  await page.locator('h1').click();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await expect
    .poll(() => page.locator('tr.is-chosen .name a').getAttribute('href'))
    .toBe('#/limiters/checkout');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('h1').textContent()).toBe('checkout');

  const { revision, state: breaker } = await params('payments');
  if (breaker === 'closed') await stage.verb('payments', 'trip', { hold: true, revision });
  await go(page, '#/');
  await expect.poll(() => page.title()).toMatch(/^payments: breaker held open/);
  await expect
    .poll(names)
    .toEqual(['payments', expect.anything(), expect.anything(), expect.anything()]);
  await expect.poll(() => page.locator('tr.row').first().textContent()).toContain('open');
  expect(faults).toEqual([]);
  await context.close();
});

test('charts move, with a table behind them and a link for each change', async () => {
  const { page, context, faults } = await stage.open();
  await go(page, '#/limiters/checkout');
  const chart = page.locator('[data-chart="Demand and rate"]');
  await chart.locator('canvas').waitFor();
  await chart.getByText('As a table').click();
  const rows = chart.locator('tbody tr');
  await expect.poll(() => rows.count()).toBeGreaterThan(2);
  const newest = await rows.first().textContent();
  const picture = await chart.locator('canvas').screenshot();
  await expect.poll(() => rows.first().textContent()).not.toBe(newest);
  await expect
    .poll(async () => picture.equals(await chart.locator('canvas').screenshot()))
    .toBe(false);
  // What is asked for is shown in numbers, too.
  await expect.poll(() => chart.locator('figcaption').textContent()).toMatch(/offered \d/);
  const marker = page.locator('a.marker').first();
  await marker.click();
  await page.getByRole('heading', { name: /^Change r\d+/ }).waitFor();
  expect(page.url()).toMatch(/changes\/\d+\.\d+$/);
  expect(faults).toEqual([]);
  await context.close();
});

describe('a rollback holds', () => {
  test('by mouse: preview, reason, then written as shown', async () => {
    const { page, context, faults } = await stage.open();
    await go(page, '#/limiters/search');
    await page.getByRole('button', { name: 'Roll back…' }).click();
    const dialog = page.getByRole('dialog');
    // The change before the last stood at 50.
    await dialog.locator('tr.moved').getByText('→ 50/s').waitFor();
    await dialog.getByLabel(/^Why/).fill('too fast');
    await dialog.getByRole('button', { name: 'Roll back', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page
      .locator('.done')
      .getByText(/revision \d+/)
      .waitFor();
    await expectRolledBack('search', 50, 'too fast');
    await page.locator('[data-countdown]').first().waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  test('by keyboard alone, from the change to its undo', async () => {
    const { page, context, faults } = await stage.open();
    await go(page, '#/limiters/search');
    const button = page.getByRole('button', { name: 'Roll back…' });
    await button.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.locator('tr.moved').getByText('→ 90/s').waitFor();
    // What is asked for has the focus, not the cross; Tab goes on from there.
    await expect.poll(() => focused(page)).toBe('SELECT');
    for (let i = 0; i < 10 && (await focused(page)) !== 'INPUT'; i++) {
      await page.keyboard.press('Tab');
    }
    await page.keyboard.type('back again');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await expectRolledBack('search', 90, 'back again');
    // The focus is where it was, so that Tab goes on from there.
    await expect
      .poll(() => page.evaluate('document.activeElement?.textContent'))
      .toBe('Roll back…');
    expect(faults).toEqual([]);
    await context.close();
  });

  test('what moved meanwhile is shown again before it is written', async () => {
    const { page, context } = await stage.open();
    await go(page, '#/limiters/search');
    await page.getByRole('button', { name: 'Pin…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Rate, per second').fill('70');
    await dialog.locator('tr.moved').getByText('→ 70/s').waitFor();
    const { revision } = await params('search');
    await stage.verb('search', 'pin', { rate: 65, revision });
    await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
    await dialog.getByText(/changed while you looked; nothing was written/).waitFor();
    await dialog.getByText('65/s').first().waitFor();
    expect((await params('search')).rate).toBe(65);
    await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    expect((await params('search')).rate).toBe(70);
    await context.close();
  });
});

/** In Redis, in the audit log, and still there after the autopilot has had its say. */
async function expectRolledBack(name: string, rate: number, why: string): Promise<void> {
  const redis = stage.server.client();
  const { entries } = await readEntries(redis, { name }, { kind: 'change', limit: 1 });
  expect(entries[0]!.body).toMatchObject({
    reason: 'rollback',
    actor: { kind: 'person', name: 'local', verified: true },
    after: { rate },
    detail: { why },
  });
  const first = (await params(name)).validUntil;
  await until('ten more heartbeats', async () => (await params(name)).validUntil > first + 1000);
  expect((await params(name)).rate).toBe(rate);
}

test('reading needs no token on loopback; changes do, and a role is shown', async () => {
  const { page, context } = await stage.open({ signedIn: false });
  await go(page, '#/limiters/search');
  await page.getByText('Read-only. Sign in as operator').waitFor();
  expect(await page.getByRole('button', { name: 'Roll back…' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type('flyball_wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(stage.token);
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('local: admin').waitFor();
  await page.getByRole('button', { name: 'Roll back…' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Read-only. Sign in as operator').waitFor();
  await context.close();
});

test('C98: markup, formulas, directions and 10 KB in names do nothing', async () => {
  const { page, context, faults } = await stage.open();
  const { revision } = await params('reports');
  await stage.verb('reports', 'freeze', { revision, reason: `${HOSTILE.bidi} ${HOSTILE.formula}` });
  await go(page, '#/limiters/search');
  await page.getByText('What happened').first().waitFor();
  await page.locator('.episode').first().waitFor();
  for (const hash of [
    '#/limiters/checkout',
    '#/limiters/reports',
    '#/history',
    '#/policies/checkout',
    '#/fleet',
  ]) {
    await go(page, hash);
    await page.locator('main section').first().waitFor();
  }
  await go(page, '#/limiters/checkout');
  await page.getByText('=HYPERLINK').first().waitFor();
  await go(page, `#/limiters/${encodeURIComponent(HOSTILE.markup.repeat(100))}`);
  await page.locator('.error').waitFor();
  expect(await page.evaluate("'hostile' in window")).toBe(false);
  expect(await page.locator('main img, main script, main a[href^="http"]').count()).toBe(0);
  // An unknown limiter is a 404 of the API, which browsers write to the console.
  expect(faults.filter((fault) => !/status of 4\d\d/.test(fault))).toEqual([]);
  await context.close();
});

test('C97: a killed daemon shows as stale, behind a gateway of 502 too, and the page recovers by itself', async () => {
  const { page, context } = await stage.open();
  await go(page, '#/');
  await expect.poll(() => state(page)).toBe('live');
  const refused = stage.gateway.refused;
  await page.getByText('local: admin').waitFor();
  await stage.daemon().stop();
  await expect.poll(() => state(page)).toBe('stale');
  await page.locator('[data-banner="stale"]').waitFor();
  expect(await page.locator('body').getAttribute('class')).toContain('is-stale-page');
  // It asked, was told 502, and asks again.
  await expect.poll(() => stage.gateway.refused).toBeGreaterThan(refused + 1);
  await stage.startDaemon();
  await expect.poll(() => state(page)).toBe('live');
  await page.locator('[data-banner="stale"]').waitFor({ state: 'detached' });
  await expect.poll(() => page.locator('tr.row').count()).toBe(4);
  // The daemon that was started again knows no session: the head says so, without a verb that is refused first.
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await context.close();
});

test('a session that ended under an open dialog: said in words, and nothing is written', async () => {
  const { page, context } = await stage.open();
  await go(page, '#/limiters/search');
  await page.getByRole('button', { name: 'Freeze…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('.preview table').waitFor();
  const { revision } = await params('search');
  await context.clearCookies();
  await dialog.getByRole('button', { name: 'Freeze', exact: true }).click();
  await dialog.getByText('You are no longer signed in').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('Read-only. Sign in as operator').waitFor();
  expect((await params('search')).revision).toBe(revision);
  await context.close();
});

describe('each page, in both themes and at 360 px', () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const pages: Record<string, { hash: string; ready: string }> = {
    overview: { hash: '#/', ready: 'tr.row' },
    limiter: { hash: '#/limiters/checkout', ready: 'canvas' },
    change: { hash: '', ready: '.one-change .preview' },
    rollback: { hash: '#/limiters/search', ready: 'dialog .preview table' },
    history: { hash: '#/history', ready: '.episode' },
    policies: { hash: '#/policies', ready: 'tbody tr' },
    policy: { hash: '#/policies/checkout', ready: '.version' },
    fleet: { hash: '#/fleet', ready: 'tbody tr' },
  };
  const looks = [
    { theme: 'light', width: 1280 },
    { theme: 'dark', width: 1280 },
    { theme: 'light', width: 360 },
    { theme: 'dark', width: 360 },
  ] as const;

  test.each(looks)(
    '$theme at $width px: axe finds nothing serious, nothing overflows',
    async (look) => {
      const { page, context, faults } = await stage.open(look);
      const { epoch, revision } = await params('search');
      pages.change!.hash = `#/limiters/search/changes/${epoch}.${revision}`;
      const found: unknown[] = [];
      for (const [name, { hash, ready }] of Object.entries(pages)) {
        await go(page, hash);
        if (name === 'rollback') await page.getByRole('button', { name: 'Roll back…' }).click();
        await page.locator(ready).first().waitFor();
        await shoot(page, name, look);
        await page.evaluate(axe);
        const { violations } = (await page.evaluate('axe.run()')) as { violations: Violation[] };
        const serious = violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .map(
            ({ id, nodes }) =>
              `${id}: ${nodes
                .map(({ html }) => html.slice(0, 160))
                .slice(0, 3)
                .join(' | ')}`,
          );
        const over = (await page.evaluate(OVERFLOW)) as number;
        if (serious.length > 0 || over > 0) found.push({ name, serious, over });
      }
      expect(found).toEqual([]);
      expect(faults).toEqual([]);
      await context.close();
    },
  );
});

/** Pixels by which the page is wider than its window. */
const OVERFLOW = 'document.documentElement.scrollWidth - innerWidth';

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}

/** Kept only when asked for: `SUITE_SCREENSHOTS=docs/images npx vitest run test/browser`. */
async function shoot(page: Page, name: string, { theme, width }: { theme: string; width: number }) {
  const folder = process.env.SUITE_SCREENSHOTS;
  if (folder === undefined || (theme === 'dark' && width === 360)) return;
  const size = width === 360 ? 'narrow' : theme;
  await page.waitForTimeout(1500);
  await page.screenshot({
    path: `${folder}/dashboard-${name}-${size}.png`,
    fullPage: name !== 'rollback',
  });
}
