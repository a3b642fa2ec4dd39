/** The bench `dashboard`: 1,000 limiters in a real browser: until it can be used, how it scrolls, what it costs the daemon. */
import { spawnSync } from 'node:child_process';
import { chromium } from 'playwright-core';
import { startFeed } from './daemon-load.mjs';
import { adoptAll, startDaemon } from './daemon-process.mjs';
import { startRedis } from './redis.mjs';
import { median, target } from './report.mjs';

const LIMITERS = 1000;
/** A crowded machine may take so long until all is led. */
const PATIENCE_MS = 120_000;
const LOADS = 5;
const WATCH_S = { quick: 10, usual: 30 };
/** Periods with a browser, each between two without: what the daemon needs anyway wanders by more than a browser costs. */
const PERIODS = { quick: 1, usual: 3 };
/** Whoever was gone just now is remembered for some seconds: then that is over. */
const FORGOTTEN_MS = 35_000;

export async function dashboardBench(_parts, { quick = false } = {}) {
  const seconds = quick ? WATCH_S.quick : WATCH_S.usual;
  const executablePath = chromiumPath();
  const server = await startRedis();
  await adoptAll(server.control, LIMITERS);
  const load = await startFeed(server.port, LIMITERS);
  const daemon = await startDaemon(server.port);
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  try {
    await until(
      () => daemon.http !== '' && daemon.leads > LIMITERS,
      PATIENCE_MS,
      () => `${daemon.leads} limiters are led`,
    );
    const opened = [];
    for (let i = 0; i < LOADS; i++) opened.push(await openOnce(browser, daemon.http));
    const of = (name) => opened.map((one) => one[name]);
    const { costs, alone, watched, frames } = await costOf(browser, daemon, quick);
    return {
      tables: [
        {
          title: `The overview of ${LIMITERS} limiters, ${LOADS} loads of a new browser each`,
          columns: ['', 'median', 'worst'],
          rows: [
            ['load event, ms', median(of('loadMs')), Math.max(...of('loadMs'))],
            ['rows after it, ms', median(of('rowsMs')), Math.max(...of('rowsMs'))],
            ['a search answered after it, ms', median(of('usableMs')), Math.max(...of('usableMs'))],
            ['rows in the page', median(of('rows')), Math.max(...of('rows'))],
            ['a frame while scrolling, ms', median(frames), Math.max(...frames)],
          ],
        },
        {
          title: `CPU of the daemon, % of a core, in turns of ${seconds} s`,
          columns: ['', 'median', 'least', 'most'],
          rows: [
            ['nobody looks', ...spread(alone)],
            ['one browser at the overview', ...spread(watched)],
            ['more than before and after it', ...spread(costs)],
          ],
        },
      ],
      targets: [
        target('overview usable after its load event, ms', median(of('usableMs')), '<=', 1000),
        target('one browser, % of a core of the daemon', 100 * median(costs), '<=', 2),
      ],
      notes: daemon.failures.slice(0, 3).map((msg) => `The daemon said: ${msg}`),
    };
  } finally {
    await browser.close();
    await load.stop();
    await daemon.stop();
    await server.stop();
  }
}

/** Shares of a core with a browser and without, in turns; of each turn with one what it is above its neighbours. */
async function costOf(browser, daemon, quick) {
  const how = quick ? 'quick' : 'usual';
  const [alone, watched, costs] = [[], [], []];
  let frames = [];
  await pause(FORGOTTEN_MS);
  alone.push(await cpuShare(daemon, WATCH_S[how]));
  for (let i = 0; i < PERIODS[how]; i++) {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(daemon.http);
    await page.locator('tr.row').first().waitFor();
    watched.push(await cpuShare(daemon, WATCH_S[how]));
    if (i === 0) frames = await scroll(page);
    await page.close();
    await pause(FORGOTTEN_MS);
    alone.push(await cpuShare(daemon, WATCH_S[how]));
    costs.push(watched[i] - (alone[i] + alone[i + 1]) / 2);
  }
  return { alone, watched, costs, frames };
}

const spread = (shares) =>
  [median(shares), Math.min(...shares), Math.max(...shares)].map((share) => 100 * share);

/** From the load event until rows stand there, and until a search that was typed has its answer. */
async function openOnce(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(url, { waitUntil: 'load' });
  await page.locator('tr.row').first().waitFor();
  const seen = await page.evaluate(`(() => {
    const { loadEventEnd } = performance.getEntriesByType('navigation')[0];
    const rows = document.querySelectorAll('tr.row').length;
    return { loadMs: loadEventEnd, rowsMs: performance.now() - loadEventEnd, rows };
  })()`);
  await page.keyboard.press('/');
  await page.keyboard.type('l0999');
  await page.locator('tr.row').nth(1).waitFor({ state: 'detached' });
  const usableMs = await page.evaluate(
    "performance.now() - performance.getEntriesByType('navigation')[0].loadEventEnd",
  );
  await context.close();
  return { ...seen, usableMs };
}

/** Times between frames while a thousand rows go by. */
async function scroll(page) {
  return page.evaluate(`new Promise((ok) => {
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      scrollBy(0, 400);
      if (times.length < 120) requestAnimationFrame(step);
      else ok(times.slice(1));
    };
    requestAnimationFrame(step);
  })`);
}

async function cpuShare(daemon, seconds) {
  const [cpu, ms] = [daemon.cpuSeconds(), performance.now()];
  await pause(seconds * 1000);
  return (daemon.cpuSeconds() - cpu) / ((performance.now() - ms) / 1000);
}

function chromiumPath() {
  const names = [process.env.SUITE_CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'];
  for (const name of names.filter(Boolean)) {
    const found = spawnSync('which', [name], { encoding: 'utf8' });
    if (found.status === 0) return found.stdout.trim();
  }
  throw new RangeError('no chromium on PATH: install it, or set SUITE_CHROMIUM.');
}

const pause = (ms) => new Promise((ok) => setTimeout(ok, ms));

async function until(done, ms, what) {
  const giveUpAt = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > giveUpAt) throw new Error(`bench: after ${ms} ms ${what()}`);
    await pause(100);
  }
}
