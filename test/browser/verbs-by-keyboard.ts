/** Each verb of the dashboard by keyboard, from its button to what it did in Redis, on a stage that others made. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries } from '../../src/actuate/audit.js';
import type { StatusView } from '../../src/view/status.js';
import { until } from '../support/daemon.js';
import { type DashboardStage, PATIENCE_MS } from '../support/dashboard-stage.js';

export const focused = (page: Page) => page.evaluate('document.activeElement?.tagName');
export const verb = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

export function verbsByKeyboard(stageOf: () => DashboardStage): void {
  const params = async (name: string) =>
    (await readParams(stageOf().server.client(), { name })).params!;
  const go = (page: Page, hash: string) => page.goto(`${stageOf().url}/${hash}`);

  /** The button, Enter; what is asked for has the focus. */
  async function begin(page: Page, button: string) {
    await verb(page, button).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    return dialog;
  }

  /** What the API says of `orders`; whatever a try before this one has left is ended. */
  const orders = async () => (await stageOf().ask('/limiters/orders')).limiter as StatusView;
  async function clean(): Promise<void> {
    const { holds, state: breaker } = await orders();
    const kinds = holds.map(({ kind }) => kind);
    const end = (name: string, more = {}) => stageOf().verb('orders', name, more);
    if (kinds.includes('bounds')) await end('bounds', { clear: true });
    if (kinds.includes('frozen')) await end('thaw');
    if (breaker !== 'closed') await end('reset');
  }

  test('a rollback asked for before the log is read: where it leads is filled in once it is', async () => {
    for (const rate of [80, 40]) await stageOf().verb('search', 'pin', { rate, inFlight: 20 });
    const { page, context } = await stageOf().open();
    let read = () => {};
    const held = new Promise<void>((ok) => {
      read = ok;
    });
    await page.route(/\/audit\?/, async (route) => {
      await held;
      await route.continue();
    });
    await go(page, '#/limiters/search');
    const dialog = await begin(page, 'Roll back…');
    await dialog.getByText('Choose the revision to go back to.').waitFor();
    read();
    await dialog.locator('tr.moved').getByText('→ 80/s').waitFor();
    await context.close();
  });

  test('bounds for a while: refused in words, previewed, written, counted down, ended', async () => {
    await clean();
    const { page, context, faults } = await stageOf().open();
    await go(page, '#/limiters/orders');
    const dialog = await begin(page, 'Bounds…');
    await expect.poll(() => focused(page)).toBe('INPUT');
    await page.keyboard.type('x1');
    await dialog.getByText('x1 is no number above 0.').waitFor();
    const submit = dialog.getByRole('button', { name: 'Set the bounds' });
    expect(await submit.isDisabled()).toBe(true);
    await page.keyboard.press('Control+A');
    await page.keyboard.type('900');
    await dialog
      .getByText('the least rate is 900, but the most is 400: give the most of the rate too')
      .waitFor();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('30');
    await page.keyboard.press('Tab');
    await page.keyboard.type('600');
    await dialog.locator('tr.moved').getByText('→ 30 … 600/s').waitFor();
    await dialog.getByLabel(/^Why/).focus();
    await page.keyboard.type('a sale');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    const held = page.locator('.now .pair').filter({ hasText: 'Bounds set' });
    await held
      .locator('[data-countdown]')
      .getByText(/^(59|60|1:00):/)
      .waitFor();
    expect((await orders()).bounds?.rate).toEqual([30, 600]);

    const again = await begin(page, 'Bounds…');
    // The first thing asked is whether to end those that hold.
    await page.keyboard.press('Space');
    await again.locator('tr.moved').getByText('→ 20 … 400/s').waitFor();
    await page.keyboard.press('Enter');
    await again.waitFor({ state: 'detached' });
    await held.waitFor({ state: 'detached' });
    expect((await orders()).bounds?.rate).toEqual([20, 400]);
    // A refused preview is a 4xx of the API, which browsers write to the console.
    expect(faults.filter((fault) => !/status of 4\d\d/.test(fault))).toEqual([]);
    await context.close();
  });

  test('freeze and thaw, trip and reset: done, said, and undone from the same button', async () => {
    await clean();
    const { page, context, faults } = await stageOf().open();
    await go(page, '#/limiters/orders');
    const badge = page.locator('.head .state');
    const steps = [
      { button: 'Freeze…', says: () => page.locator('.now').getByText(/^Frozen$/) },
      { button: 'Thaw…', says: () => verb(page, 'Freeze…') },
      { button: 'Trip…', says: () => badge.getByText('denying all') },
      { button: 'Reset…', says: () => badge.getByText('passing') },
    ];
    for (const { button, says } of steps) {
      const dialog = await begin(page, button);
      await dialog.locator('.preview .sentence').first().waitFor();
      await dialog.getByLabel(/^Why/).focus();
      await page.keyboard.type(`by hand: ${button}`);
      await expect.poll(() => dialog.locator('button[type=submit]').isEnabled()).toBe(true);
      await page.keyboard.press('Enter');
      await dialog.waitFor({ state: 'detached' });
      await says().first().waitFor();
      // Who pressed it by a key stays where it was, though it says something else now.
      await expect
        .poll(() => page.evaluate('document.activeElement?.textContent'))
        .toBe(
          { 'Freeze…': 'Thaw…', 'Thaw…': 'Freeze…', 'Trip…': 'Reset…', 'Reset…': 'Trip…' }[button],
        );
    }
    const redis = stageOf().server.client();
    const { entries } = await readEntries(redis, { name: 'orders' }, { kind: 'change', limit: 20 });
    const whys = entries.map(({ body }) => body.detail?.why);
    for (const { button } of steps) expect(whys).toContain(`by hand: ${button}`);
    expect(faults).toEqual([]);
    await context.close();
  });

  test('a changed file that waits is shown, previewed and applied', async () => {
    const { capacity } = await params('orders');
    const wanted = capacity === 60 ? 90 : capacity + 5;
    // A try before this one has applied it.
    if (capacity !== 60) stageOf().writeWaiting('orders', wanted);
    const waits = async () => (await orders()).file === 'pending';
    await until('the file to wait', waits, PATIENCE_MS);
    const { page, context, faults } = await stageOf().open();
    await go(page, '#/policies');
    const row = page.locator('tbody tr').filter({ hasText: 'orders' });
    await row.getByText('a changed file waits to be adopted').waitFor();
    const dialog = await begin(page, 'Apply… the file of orders');
    await dialog.locator('tr.moved').getByText(`→ ${wanted}`).waitFor();
    await dialog.getByLabel(/^Why/).focus();
    await page.keyboard.type('room for bursts');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await row.getByText('as its file says').waitFor();
    await page
      .locator('.done')
      .getByText(/^orders/)
      .waitFor();
    expect((await params('orders')).capacity).toBe(wanted);
    const redis = stageOf().server.client();
    const { entries } = await readEntries(redis, { name: 'orders' }, { kind: 'change', limit: 20 });
    expect(entries.map(({ body }) => body)).toContainEqual(
      expect.objectContaining({
        reason: 'policy_adopted',
        actor: { kind: 'person', name: 'local', verified: true },
        detail: expect.objectContaining({ why: 'room for bursts' }),
      }),
    );
    expect(faults).toEqual([]);
    await context.close();
  });
}
