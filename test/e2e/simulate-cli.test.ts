/** `flyball simulate` as people run it: the table, JSON, the page, a fitted plant, and every wrong call. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { serviceOf } from '../../src/sim/service.js';
import { SCENARIOS } from '../../src/testing.js';
import { historyOf, policyAt } from '../sim/support.js';
import { cli } from '../support/cli-run.js';

// Much is computed; on a busy machine that takes a while.
vi.setConfig({ testTimeout: 180_000 });

let dir: string;
let policy: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-simulate-'));
  policy = write('shop.mjs', asFile(policyAt(20)));
});
afterAll(() => rmSync(dir, { recursive: true }));

const asFile = (value: unknown) => `export default ${JSON.stringify(value)};\n`;

function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

test('a table on stdout whose first line says whose plant it is, progress on stderr', async () => {
  const { code, stdout, stderr } = await cli(['simulate', policy, '--scenario', 'burst,night']);
  expect(code).toBe(0);
  const lines = stdout.split('\n');
  expect(lines[0]).toMatch(/^plant: default, not yours \(it carries 22\/s, answers in 50 ms/);
  expect(lines[1]).toBe('policy: shop-20 under adaptive; seed 1');
  expect(stdout).toMatch(
    /scenario +policy +no limit +static +step rule +best +SLO missed +converges/,
  );
  expect(stdout).toMatch(
    /^burst +[01]\.\d{3} +[01]\.\d{3} +[01]\.\d{3} +[01]\.\d{3} +\d+\/s +\d+ s +\d+ s +\d+ % /m,
  );
  expect(stdout).toMatch(/^night +.* \d+\.\d +0$/m);
  expect(stdout).toMatch(/^mean +[01]\.\d{3}/m);
  expect(stderr).toMatch(/burst … \(1 of 2\)\nnight … \(2 of 2\)/);
});

test('--json gives every figure as a number, several seeds and another law', async () => {
  const args = ['--scenario', 'burst', '--seed', '4', '--seeds', '2', '--law', 'aimd', '--json'];
  const first = await cli(['simulate', policy, ...args]);
  expect(first.code).toBe(0);
  const out = JSON.parse(first.stdout);
  expect(out).toMatchObject({ schema: 1, policy: 'shop-20', law: 'aimd', simulatedAs: 'auto' });
  expect(out.plant).toMatchObject({ isDefault: true, capacityPerSecond: expect.closeTo(22.2, 1) });
  expect(out.rows).toHaveLength(1);
  expect(out.rows[0]).toMatchObject({ scenario: 'burst', seeds: [4, 5] });
  for (const of of ['policy', 'none', 'static', 'step', 'best']) {
    expect(out.rows[0].goodput[of]).toBeGreaterThan(0);
    expect(out.rows[0].goodput[of]).toBeLessThanOrEqual(1);
  }
  const again = await cli(['simulate', policy, ...args]);
  expect(again.stdout).toBe(first.stdout);
});

test('a policy that only recommends is simulated as if auto, and that is said', async () => {
  const path = write('recommend.mjs', asFile(policyAt(20, { mode: 'recommend' })));
  const { stdout } = await cli(['simulate', path, '--scenario', 'night']);
  expect(stdout).toContain('its mode is recommend, simulated as if auto');
});

test('--list says what the scenarios are, without a policy', async () => {
  const { code, stdout } = await cli(['simulate', '--list']);
  expect(code).toBe(0);
  const [head, ...rows] = stdout.trimEnd().split('\n');
  expect(head).toMatch(/^scenario +lasts +what happens/);
  const cells = rows.map((row) => row.trimEnd().split(/ {2,}/));
  expect(cells).toEqual(
    SCENARIOS.map(({ name, says, durationS }) => [name, `${durationS} s`, says]),
  );
  const json = JSON.parse((await cli(['simulate', '--list', '--json'])).stdout);
  expect(json.scenarios).toEqual(
    SCENARIOS.map(({ name, says, durationS }) => ({ name, says, durationS })),
  );
});

describe('--fit', () => {
  test('a history makes the plant yours, and says how well it fits', async () => {
    const service = serviceOf({ capacityPerSecond: 50, leisureMs: 100 });
    const history = write(
      'history.json',
      JSON.stringify(historyOf(service, 50, { seconds: 2400 })),
    );
    const args = ['--fit', history, '--scenario', 'night', '--json'];
    const { code, stdout } = await cli(['simulate', policy, ...args]);
    expect(code).toBe(0);
    const { plant } = JSON.parse(stdout);
    expect(plant.note).toMatch(
      /^plant: fitted to \d+ points \(it carries \d+\/s, .*R² 0\.\d\d; up to \d+\/s were seen/,
    );
    expect(plant).toMatchObject({
      isDefault: false,
      fit: { kind: 'fitted', leftOut: expect.any(Number) },
    });
  });

  test('a history that says too little is exit 1, one that cannot be read too', async () => {
    const few = write('few.csv', 'atMs,okPerSecond,meanMs\n0,10,50\n');
    const one = await cli(['simulate', policy, '--fit', few]);
    expect(one).toMatchObject({ code: 1, stdout: '' });
    expect(one.stderr).toMatch(
      /FLYBALL_E_SIM_FIT: .*1 usable points are too few: at least 20 minutes/,
    );
    const gone = await cli(['simulate', policy, '--fit', join(dir, 'gone.json'), '--json']);
    expect(gone.code).toBe(1);
    expect(JSON.parse(gone.stdout).error).toMatchObject({ code: 'FLYBALL_E_SIM_HISTORY' });
    const bad = write('bad.csv', 'atMs,okPerSecond\n0,10\n');
    expect((await cli(['simulate', policy, '--fit', bad])).stderr).toMatch(/has no column meanMs/);
  });
});

describe('--html', () => {
  test('one file that asks for nothing, with each scenario, and text as text', async () => {
    const owner = '<script>alert("x")</script> & co';
    const path = write('markup.mjs', asFile({ ...policyAt(20), owner }));
    const page = join(dir, 'out.html');
    const pictures = join(dir, 'pictures', 'new');
    const args = ['simulate', path, '--scenario', 'burst,upstream-outage', '--html', page];
    const { code, stderr } = await cli([...args, '--svg', pictures]);
    expect(code).toBe(0);
    expect(stderr).toContain('Wrote');
    const html = readFileSync(page, 'utf8');
    expect(html).toContain('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; co');
    expect(html).not.toContain('<script');
    expect(html).not.toMatch(/(src|href)="(?!#)|url\(|@import|https?:/);
    expect(html).toContain('prefers-color-scheme: dark');
    expect(html).toContain('plant: default, not yours');
    expect(html).not.toMatch(/NaN|undefined|Infinity|\[object/);
    expect(html.match(/<section id="/g)).toHaveLength(2);
    // Five plots each, wide and narrow.
    expect(html.match(/<svg /g)).toHaveLength(20);
    expect(html).toMatch(/class="objective"/);
    // The breaker opens in the outage, and what was changed is told in sentences.
    expect(html).toMatch(/class="open" x="[\d.]+"/);
    expect(html).toMatch(/<code>breaker_trip<\/code> \S+ .*\d/);
    expect(unbalanced(html)).toEqual([]);

    const outage = readFileSync(join(pictures, 'upstream-outage.svg'), 'utf8');
    expect(readdirSync(pictures).sort()).toEqual(['burst.svg', 'upstream-outage.svg']);
    expect(outage).toMatch(
      /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 860 \d+" role="img"/,
    );
    expect(outage.match(/class="title"/g)).toHaveLength(5);
    expect(outage).toMatch(/<rect class="ground"[^>]*>/);
    expect(outage).toContain('<title>shop-20, upstream-outage: Every call upstream fails');
    expect(outage).not.toMatch(/NaN|undefined|Infinity|<script|(src|href)=/);
    expect(unbalanced(outage)).toEqual([]);
  });

  test('a place that cannot be written is said', async () => {
    const page = join(dir, 'no', 'such', 'folder.html');
    const run = await cli(['simulate', policy, '--scenario', 'burst', '--html', page]);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/FLYBALL_E_SIM_PAGE: .*cannot be written \(ENOENT\)/);
    const file = write('no-folder', '');
    const beside = await cli(['simulate', policy, '--scenario', 'burst', '--svg', file]);
    expect(beside.stderr).toMatch(/FLYBALL_E_SIM_PAGE: .*no-folder cannot be written \(EEXIST\)/);
  });
});

test('the help shows examples, laws and exit codes, and no objects', async () => {
  const { code, stdout } = await cli(['simulate', '--help']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Examples:/m);
  expect(stdout).toContain('"fixed", "adaptive"');
  expect(stdout).toMatch(/Exit codes: 0 it ran, 1 a history cannot be fitted/);
  expect(stdout).not.toMatch(/\[object|"durationS"/);
});

describe('wrong calls', () => {
  test.each([
    [['--scenario', 'surgee'], /"surgee" is no scenario\. Did you mean surge\?/],
    [['--scenario', 'x'], /Scenarios are steady, surge, .*, or all/],
    [['--seed', '-1'], /is not a whole number/],
    [['--seeds', '0'], /is not a whole number ≥ 1/],
    [['--seeds', '101'], /too many: 1 to 100/],
    [['--law', 'magic'], /Allowed choices are fixed, adaptive/],
  ])('%s is exit 64', async (args, message) => {
    const run = await cli(['simulate', policy, ...args]);
    expect(run.code).toBe(64);
    expect(run.stderr).toMatch(message);
  });

  test('no policy, a folder of several, a policy with faults', async () => {
    expect(await cli(['simulate'])).toMatchObject({ code: 64, stderr: /Name a policy file/ });
    const bad = write(
      'bad.mjs',
      'export default { limiter: { name: "b", rate: -1, capacity: 1 } };',
    );
    const faulty = await cli(['simulate', bad]);
    expect(faulty.code).toBe(78);
    expect(faulty.stderr).toMatch(/FLYBALL_E_POLICY_INVALID .*limiter\.rate/);
    mkdirSync(join(dir, 'two'));
    write('two/a.mjs', asFile(policyAt(20)));
    write('two/b.mjs', asFile(policyAt(30)));
    const two = await cli(['simulate', join(dir, 'two')]);
    expect(two.code).toBe(64);
    expect(two.stderr).toMatch(/holds 2 policies: name one of .*a\.mjs, .*b\.mjs/);
    const gone = await cli(['simulate', join(dir, 'gone.ts')]);
    expect(gone.code).toBe(78);
  });
});

/** Tags that do not close in order: the page is written so that each does. */
function unbalanced(html: string): string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  const whole = /^(meta|line|rect|path|!doctype)$/;
  for (const [, close, name] of html
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .matchAll(/<(\/?)([a-z!][a-z0-9]*)\b[^>]*>/g)) {
    if (whole.test(name!)) continue;
    if (!close) open.push(name!);
    else if (open.pop() !== name) wrong.push(name!);
  }
  return [...wrong, ...open];
}
