/** The dashboard in a real browser, on a daemon as it ships, a real Redis and services under load. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries } from '../../src/actuate/audit.js';
import { until } from '../support/daemon.js';
import { faultsOf, LOOKS, shoot } from '../support/dashboard-looks.js';
import {
  type DashboardStage,
  dashboardStage,
  HOSTILE,
  LIMITERS,
} from '../support/dashboard-stage.js';
import { focused, verb, verbsByKeyboard } from './verbs-by-keyboard.js';

vi.setConfig({ testTimeout: 180_000 });
let stage: DashboardStage;

beforeAll(async () => {
  stage = await dashboardStage();
}, 300_000);
afterAll(() => stage.close());
// A test that failed half-way may have left none.
beforeEach(() => stage.needDaemon());

const params = async (name: string) => (await readParams(stage.server.client(), { name })).params!;
const go = (page: Page, hash: string) => page.goto(`${stage.url}/${hash}`);
const state = (page: Page) => page.locator('.age').getAttribute('data-state');

/** Somebody has pinned these rates, one after the other, and the cap, so that no law moves between; pictures of their reasons are for people. */
async function pinned(name: string, rates: readonly number[]): Promise<void> {
  const reason = process.env.SUITE_SCREENSHOTS ? 'the index is rebuilt' : HOSTILE.markup;
  for (const rate of rates) {
    await stage.verb(name, 'pin', { rate, inFlight: 20, reason });
  }
}

test('the overview: found, sorted, opened by keys; the title says what is wrong', async () => {
  const { page, context, faults } = await stage.open();
  await go(page, '#/');
  await expect.poll(() => page.locator('tr.row').count()).toBe(LIMITERS.length);
  await page.keyboard.press('/');
  await page.keyboard.type('chec');
  await expect.poll(() => page.locator('tr.row').count()).toBe(1);
  expect(page.url()).toContain('q=chec');
  await page.keyboard.press('Escape');
  await expect.poll(() => page.locator('tr.row').count()).toBe(LIMITERS.length);

  await page.getByRole('button', { name: 'Limiter', exact: true }).click();
  const names = () => page.locator('tr.row .name a bdi.clip').allTextContents();
  await expect.poll(names).toEqual(LIMITERS);
  await page.locator('h1').click();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await expect
    .poll(() => page.locator('tr.is-chosen .name a').getAttribute('href'))
    .toBe('#/limiters/checkout');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('h1').textContent()).toBe('checkout');

  const { state: breaker } = await params('payments');
  if (breaker === 'closed') await stage.verb('payments', 'trip', { hold: true });
  await go(page, '#/');
  await expect.poll(() => page.title()).toMatch(/^payments: breaker held open/);
  await expect.poll(async () => (await names())[0]).toBe('payments');
  await expect
    .poll(() => page.locator('tr.row').first().textContent())
    .toContain('open· denying all');
  // Fleet-wide it is an alert, and the audit logs are on their way to their files.
  await go(page, '#/fleet');
  const alerts = page.getByRole('region', { name: 'Alerts' });
  await alerts.getByRole('link', { name: 'payments' }).first().waitFor();
  await page.getByRole('region', { name: 'Audit export' }).getByText('up to date').waitFor();
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
  // A minute of half an hour ago, and nothing of the time since: no line leads from there to here.
  await stage.storeMinute('checkout', 30);
  await page.getByText('1 h', { exact: true }).click();
  await page
    // With dates, after midnight.
    .getByText(/^Nothing was recorded [\d:, –-]+: no requests came, or no daemon ran\.$/)
    .waitFor();
  const empty = rows.filter({ hasText: /(–){4}$/ });
  await expect.poll(() => empty.count()).toBeGreaterThan(0);
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
    await pinned('search', [50, 90]);
    const { page, context, faults } = await stage.open();
    await go(page, '#/limiters/search');
    await verb(page, 'Roll back…').click();
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
    await pinned('search', [90, 50]);
    const { page, context, faults } = await stage.open();
    await go(page, '#/limiters/search');
    await verb(page, 'Roll back…').focus();
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
    await pinned('search', [90]);
    const { page, context } = await stage.open();
    await go(page, '#/limiters/search');
    await verb(page, 'Pin…').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Rate, per second').fill('70');
    await dialog.locator('tr.moved').getByText('→ 70/s').waitFor();
    await stage.verb('search', 'pin', { rate: 65 });
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

verbsByKeyboard(() => stage);

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

test('what happened in a time: by a word or two times, by keyboard, kept in the address', async () => {
  await pinned('search', [60]);
  const { page, context, faults } = await stage.open();
  await go(page, '#/history');
  await page.locator('.episode').first().waitFor();
  await page.getByLabel('From').focus();
  await page.getByLabel('From').fill('2001-01-02T00:00');
  await page.getByLabel('until').fill('2001-01-01T09:00');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('That ends before it begins').waitFor();
  await page.getByLabel('From').fill('2001-01-01T00:00');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing was changed in that time.').waitFor();
  expect(page.url()).toMatch(/#\/history\?since=200\d-\d\d-\d\dT\d\d:\d\dZ&until=200\d-/);
  // It stays where it was asked, also after a reload.
  expect(await focused(page)).toBe('INPUT');
  await page.reload();
  await page.getByText('Nothing was changed in that time.').waitFor();
  await expect.poll(() => page.getByLabel('From').inputValue()).toBe('2001-01-01T00:00');
  const hour = page.getByRole('link', { name: 'Last hour' });
  await hour.focus();
  await page.keyboard.press('Enter');
  await page.locator('.episode').filter({ hasText: 'search' }).first().waitFor();
  expect(await focused(page)).toBe('A');
  await expect.poll(() => page.getByLabel('until').inputValue()).toBe('');
  await page.goBack();
  await page.getByText('Nothing was changed in that time.').waitFor();
  expect(faults).toEqual([]);
  await context.close();
});

test('from what happened to its undo: bounds are ended, a pin that stands is named', async () => {
  await pinned('search', [60, 70]);
  const bounds = await stage.verb('search', 'bounds', { rateMin: 15, forMs: 3_600_000 });
  const { page, context, faults } = await stage.open({ signedIn: false });
  await page.setViewportSize({ width: 1280, height: 800 });
  await go(page, '#/history');
  await page
    .getByRole('link', { name: /^See and undo\s*: search$/ })
    .first()
    .click();
  // What a person did last, not what the episode began with.
  await page.getByRole('heading', { name: `Change r${bounds.revision}`, exact: true }).waitFor();
  await verb(page, 'Sign in to undo this').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Token').fill(stage.token);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('It moved no number').waitFor();
  expect(await page.locator('.one-change').getByText('Roll back to before this…').count()).toBe(0);
  const head = await page.locator('header.top').boundingBox();
  const actions = await page.locator('.actions.verbs').boundingBox();
  expect(actions!.y).toBeGreaterThanOrEqual(head!.y + head!.height);

  await verb(page, 'Roll back…').click();
  await dialog.getByText(/^Ends the pin of local; holds \S+\/s for 1 hour, then/).waitFor();
  const submit = await dialog.getByRole('button', { name: 'Roll back', exact: true }).boundingBox();
  const box = await dialog.boundingBox();
  expect(submit!.y + submit!.height).toBeLessThan(box!.y + box!.height);
  expect(box!.y + box!.height).toBeLessThanOrEqual(800);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });

  await verb(page, 'End these bounds…').click();
  expect(await dialog.getByLabel('end the bounds that hold now').isChecked()).toBe(true);
  await dialog.locator('tr.moved').getByText('→ 20 … 400/s').waitFor();
  await dialog.getByRole('button', { name: 'End the bounds' }).click();
  await dialog.waitFor({ state: 'detached' });
  await verb(page, 'End these bounds…').waitFor({ state: 'detached' });
  expect((await params('search')).minRate).toBe(20);
  expect(faults).toEqual([]);
  await context.close();
});

test('C98: markup, formulas, directions and 10 KB in names do nothing', async () => {
  await pinned('search', [80]);
  const { page, context, faults } = await stage.open();
  await stage.verb('reports', 'freeze', { reason: `${HOSTILE.bidi} ${HOSTILE.formula}` });
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
  // The next one starts meanwhile; nobody reaches it yet.
  let show = () => {};
  const started = stage.startDaemon(
    new Promise((ok) => {
      show = ok;
    }),
  );
  await expect.poll(() => state(page)).toBe('stale');
  await page.locator('[data-banner="stale"]').waitFor();
  expect(await page.locator('body').getAttribute('class')).toContain('is-stale-page');
  // It asked, was told 502, and asks again.
  await expect.poll(() => stage.gateway.refused).toBeGreaterThan(refused + 1);
  show();
  await started;
  await expect.poll(() => state(page), { timeout: 60_000 }).toBe('live');
  await page.locator('[data-banner="stale"]').waitFor({ state: 'detached' });
  await expect.poll(() => page.locator('tr.row').count()).toBe(LIMITERS.length);
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
  const { frozenUntil } = await params('search');
  await context.clearCookies();
  await dialog.getByRole('button', { name: 'Freeze', exact: true }).click();
  await dialog.getByText('You are no longer signed in').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('Read-only. Sign in as operator').waitFor();
  expect((await params('search')).frozenUntil).toBe(frozenUntil);
  await context.close();
});

describe('each page: nothing serious by axe, nothing overflows; in both themes, wide and at 360 px', () => {
  const pages: { name: string; hash: () => string | Promise<string>; ready: string }[] = [
    { name: 'overview', hash: () => '#/', ready: 'tr.row' },
    { name: 'limiter', hash: () => '#/limiters/checkout', ready: 'canvas' },
    { name: 'change', hash: changeOfSearch, ready: '.one-change .preview' },
    { name: 'rollback', hash: () => '#/limiters/search', ready: 'dialog .preview table' },
    { name: 'history', hash: () => '#/history', ready: '.episode' },
    { name: 'policies', hash: () => '#/policies', ready: 'tbody tr' },
    { name: 'apply', hash: () => '#/policies', ready: 'dialog .preview table' },
    { name: 'policy', hash: () => '#/policies/checkout', ready: '.version' },
    { name: 'fleet', hash: () => '#/fleet', ready: '.alerts li, .state.well' },
  ];
  async function changeOfSearch(): Promise<string> {
    await pinned('search', [50, 90]);
    const { epoch, revision } = await params('search');
    return `#/limiters/search/changes/${epoch}.${revision}`;
  }

  test.each(pages)('$name', async ({ name, hash, ready }) => {
    const { page, context, faults } = await stage.open();
    await go(page, await hash());
    const opens = { rollback: 'Roll back…', apply: 'Apply… the file of reports' }[name];
    if (opens !== undefined) await verb(page, opens).click();
    await page.locator(ready).first().waitFor();
    const found: string[] = [];
    for (const look of LOOKS) {
      found.push(...(await faultsOf(page, look)));
      await shoot(page, name, look, opens === undefined);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
    await context.close();
  });
});
