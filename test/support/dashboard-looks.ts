/** How a page of the dashboard looks: in both themes, wide and at 360 px; what axe says of it, and a picture when asked for. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

export const LOOKS = [
  { theme: 'light', width: 1280 },
  { theme: 'dark', width: 1280 },
  { theme: 'dark', width: 360 },
  { theme: 'light', width: 360 },
] as const;
export type Look = (typeof LOOKS)[number];

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Only what is wrong comes back: all else that axe says of a page is megabytes. */
const RUN = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')))`;
/** Pixels by which the page, or the dialog before it, is wider than what is shown of it. */
const OVERFLOW = `Math.max(...[document.documentElement, ...document.querySelectorAll('dialog[open]')]
  .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`;

/** Dresses the page so, and names what is wrong with it; empty: nothing. */
export async function faultsOf(page: Page, look: Look): Promise<string[]> {
  const { theme, width } = look;
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize(sizeOf(width));
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
  const serious = (await page.evaluate(RUN)) as string[];
  const over = (await page.evaluate(OVERFLOW)) as number;
  const wide = over > 0 ? [`${over} px wider than the window`] : [];
  return [...serious, ...wide].map((fault) => `${theme} at ${width} px: ${fault}`);
}

export function sizeOf(width: number) {
  return { width, height: width < 500 ? 780 : 900 };
}

/** Kept only when asked for: `SUITE_SCREENSHOTS=docs/images npx vitest run test/browser`. */
export async function shoot(page: Page, name: string, { theme, width }: Look, whole: boolean) {
  const folder = process.env.SUITE_SCREENSHOTS;
  if (folder === undefined || (theme === 'dark' && width === 360)) return;
  const size = width === 360 ? 'narrow' : theme;
  // The charts are drawn to their new width, and their newest points are there.
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${folder}/dashboard-${name}-${size}.png`, fullPage: whole });
}
