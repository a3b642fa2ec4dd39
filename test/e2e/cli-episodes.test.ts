/** `flyball audit` as episodes: their lines, JSON, pages over one limiter and many, and one with its entries. */
import { describe, expect, test } from 'vitest';
import type { Episode } from '../../src/audit/episodes.js';
import { seedLimiter } from '../support/cli-run.js';
import { type Step, storeLog, THREE } from '../support/episode-entries.js';
import { checkout, keys, readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);

const log = (steps: Step[], agoS: number, limiter = checkout) =>
  storeLog(rig.redis, limiter, steps, agoS);

describe('episodes', () => {
  test('newest first, each with its revisions; and how to look further and go back', async () => {
    await log(THREE, 3600);
    const shown = await rig.run('audit checkout');
    expect(shown.code).toBe(0);
    const lines = shown.stdout.trimEnd().split('\n');
    expect(lines.filter((_, i) => i % 2 === 0)).toEqual([
      expect.stringMatching(
        /^\d{4}-\d\d-\d\d \d\d:\d\d {2}pin by alice@db \(unverified\) \(sale\); 390 → 100\/s$/,
      ),
      expect.stringMatching(/ {2}failures prove 33 %; breaker opened; 2 changes$/),
      expect.stringMatching(/ {2}p99 612 ms; 400 → 200\/s; 2 changes; back at 390$/),
    ]);
    expect(lines[3]).toBe('    r122–r123, breaker open 30 s');
    expect(lines[5]).toMatch(/r120–r121, it may have begun earlier$/);
    expect(shown.stderr).toContain(
      'flyball audit checkout --episode 124; undo it: flyball rollback checkout 123 --dry-run',
    );
  });

  test('of a limiter that began in it too, the way back is to what it began with', async () => {
    await rig.run('pin checkout --rate 80 --yes');
    const list = await rig.run('audit checkout');
    expect(list.stderr).toContain('; undo it: flyball rollback checkout 1 --dry-run');
    const one = await rig.run('audit checkout --episode 2');
    expect(one.stderr).toMatch(/^Undo it: flyball rollback checkout 1 --dry-run$/m);
  });

  test('as JSON, with every field; a page goes on where the last ended', async () => {
    await log(THREE, 3600);
    const whole = parse((await rig.run('audit checkout --json')).stdout);
    expect(whole).toMatchObject({ schema: 1, next: null });
    expect(whole.episodes).toHaveLength(3);
    expect(whole.episodes[2]).toEqual({
      limiter: 'checkout',
      from: expect.stringMatching(/Z$/),
      to: expect.stringMatching(/Z$/),
      id: expect.stringMatching(/^\d+-0$/),
      lastId: expect.stringMatching(/^\d+-1$/),
      lane: 'in_force',
      moved: true,
      fromMs: expect.any(Number),
      toMs: expect.any(Number),
      open: false,
      cut: true,
      epoch: 1,
      firstRevision: 120,
      lastEpoch: 1,
      lastRevision: 121,
      changes: 2,
      before: { mode: 'auto', state: 'closed', rate: 400, capacity: 400, inFlightMax: 44 },
      farthest: { rate: 200, inFlightMax: 44 },
      after: { mode: 'auto', state: 'closed', rate: 390, capacity: 400, inFlightMax: 44 },
      cause: {
        kind: 'objective',
        reason: 'law_cut',
        text: 'p99 612 ms',
        signal: 'p99',
        value: '612 ms',
        setpoint: '500 ms',
        ratio: 1.22,
        revision: 120,
        epoch: 1,
      },
      trips: 0,
      openMs: 0,
      persons: [],
      cost: null,
      sentence: 'p99 612 ms; 400 → 200/s; 2 changes; back at 390',
    });
    const paged = [];
    let before = '';
    do {
      const flags = `--json --limit 1${before && ` --before ${before}`}`;
      const page = parse((await rig.run(`audit checkout ${flags}`)).stdout);
      paged.push(...page.episodes);
      before = page.next ?? '';
    } while (before !== '');
    expect(paged).toEqual(whole.episodes);
  });

  test('over all limiters in order of time, and page by page, where ids are the same too', async () => {
    const search = { name: 'search' };
    await seedLimiter(rig.redis, search);
    await log(THREE, 3600);
    await log(THREE, 3600, search);
    const whole = parse((await rig.run('audit --json')).stdout).episodes;
    expect(whole.map((each: { limiter: string }) => each.limiter)).toEqual(
      [0, 1, 2].flatMap(() => ['checkout', 'search']),
    );
    const paged = [];
    let before = '';
    do {
      const flags = `--json --limit 1${before && ` --before ${before}`}`;
      const page = parse((await rig.run(`audit ${flags}`)).stdout);
      paged.push(...page.episodes);
      before = page.next ?? '';
    } while (before !== '');
    expect(paged).toEqual(whole);
    expect((await rig.run('audit')).stdout).toMatch(/^\S+ \S+ {2}search {2}pin by/m);
  });

  test('--since takes in one that was not over by then, --until leaves out what began later', async () => {
    await log(THREE, 3600);
    const count = async (flags: string) =>
      parse((await rig.run(`audit checkout --json ${flags}`)).stdout).episodes.length;
    expect(await count('--since 90m')).toBe(1);
    expect(await count('--since 121m')).toBe(2);
    // In the middle of the oldest.
    const { fromMs } = parse((await rig.run('audit checkout --json')).stdout).episodes[2];
    const middle = new Date(fromMs + 10_000).toISOString();
    expect(await count(`--since ${middle}`)).toBe(3);
    expect(await count(`--until ${middle}`)).toBe(1);
    expect((await rig.run('audit checkout --since 1m')).stderr).toContain(
      'checkout has not changed in that time.',
    );
  });

  test('last night is told although thousands of changes came since; what went on past it is told whole', async () => {
    const night: Step[] = [
      { s: 0, to: { rate: 300 }, sentence: 'cut.' },
      { s: 7200, to: { rate: 100 }, sentence: 'cut.' },
      { s: 7500, to: { rate: 200 }, reason: 'law_raise' },
    ];
    const since = Array.from({ length: 2300 }, (_, i) => ({
      s: 18_000 + i,
      to: { rate: 100 + (i % 2) },
    }));
    await log([...night, ...since], 60);
    const untilMs = Date.now() - (60 + 2300 + 18_000 - 7200 - 240) * 1000;
    const asked = `audit checkout --json --until ${new Date(untilMs).toISOString()}`;
    const { episodes, next } = parse((await rig.run(asked)).stdout);
    expect(next).toBe(null);
    expect(
      episodes.map(({ firstRevision, lastRevision }: Episode) => [firstRevision, lastRevision]),
    ).toEqual([
      [121, 122],
      [120, 120],
    ]);
    // While what it began with goes on and on, too.
    const within = `audit checkout --json --until ${new Date(Date.now() - 1000_000).toISOString()}`;
    const [newest] = parse((await rig.run(within)).stdout).episodes;
    expect(newest).toMatchObject({ firstRevision: 123, lastRevision: 122 + 2300 });
  });

  test('one that goes on, and what it has cost so far by the minute roll-ups', async () => {
    await log(
      [
        { s: 0, to: { rate: 100 }, sentence: 'cut.' },
        { s: 60, to: { rate: 90 } },
      ],
      30,
    );
    const row = [
      1,
      60,
      0,
      20,
      0,
      'closed',
      100,
      100,
      0,
      900,
      500,
      { rate: 380, reserve: 20 },
      0,
      0,
      0,
    ];
    const minute = Math.floor((Date.now() - 60_000) / 60_000);
    await rig.redis.hset(
      keys.history,
      String(minute),
      JSON.stringify([...row, ...Array(11).fill(null), []]),
    );
    const [episode] = parse((await rig.run('audit checkout --json')).stdout).episodes;
    expect(episode).toMatchObject({
      open: true,
      cost: {
        denied: 400,
        byReason: { rate: 380, reserve: 20 },
        shed: 20,
        objectiveMissedS: 20,
        notClosedS: 0,
        minutes: 1,
      },
      sentence: 'cut; 400 → 90/s; 2 changes; 400 denied; not over, now at 90',
    });
    expect((await rig.run('audit checkout')).stdout).toMatch(
      /–now {2}cut; .*\n {4}r120–r121, 400 denied \(rate 380, reserve 20\), objective missed 20 s, it may/,
    );
  });

  test('one by any of its revisions, or by its id: its entries, its persons, the way back', async () => {
    await log(THREE, 3600);
    const shown = await rig.run('audit checkout --episode r123');
    expect(shown.stdout).toMatch(/^\S+ \S+ {2}checkout {2}failures prove 33 %/);
    expect(shown.stdout.match(/^r\d+/gm)).toEqual(['r123', 'r122']);
    expect(shown.stderr).toContain('flyball rollback checkout 121 --dry-run');
    expect((await rig.run('audit checkout --episode 124')).stdout).toContain(
      'alice@db (unverified) pin r124: sale',
    );
    const json = parse((await rig.run('audit checkout --episode 123 --json')).stdout);
    expect(json).toMatchObject({
      limiter: 'checkout',
      episode: { changes: 2 },
      unreadable: [],
      next: null,
    });
    expect(json.entries).toHaveLength(2);
    const again = parse(
      (await rig.run(`audit checkout --episode ${json.episode.id} --json`)).stdout,
    );
    expect(again).toEqual(json);
    expect(await rig.run('audit checkout --episode 999')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('checkout has no episode with revision 999.'),
    });
  });

  test('an episode of more entries than a page reads is told as far as it was read, and then passed', async () => {
    const steps = Array.from({ length: 2_300 }, (_, i) => ({ s: i, to: { rate: 100 + (i % 50) } }));
    await log([{ s: -3600, to: { rate: 399 } }, ...steps], 3600);
    const first = parse((await rig.run('audit checkout --json --limit 5')).stdout);
    expect(first.episodes).toMatchObject([{ cut: true, changes: 2000 }]);
    const second = parse((await rig.run(`audit checkout --json --before ${first.next}`)).stdout);
    expect(second).toMatchObject({ episodes: [{ changes: 1, firstRevision: 120 }], next: null });
    expect(
      parse((await rig.run('audit checkout --episode 500 --json')).stdout).episode,
    ).toMatchObject({
      changes: 2300,
      cut: false,
    });
  });
});
