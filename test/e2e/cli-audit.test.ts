/** `flyball audit` and `explain` on a real Redis with every daemon dead. */
import { describe, expect, test } from 'vitest';
import { cli } from '../support/cli-run.js';
import { type Step, storeLog, THREE } from '../support/episode-entries.js';
import { checkout, keys, readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);
const log = (steps: Step[], agoS: number, limiter = checkout) =>
  storeLog(rig.redis, limiter, steps, agoS);

/** What a terminal or a reader would obey or not see. */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

describe('audit and explain', () => {
  test('entries newest first, with limit, since and JSON', async () => {
    await rig.run('pin checkout --rate 80 --yes --reason why-not');
    await rig.run('release checkout --yes');
    const shown = (await rig.run('audit checkout --entries')).stdout;
    expect(shown.match(/^r\d+/gm)).toEqual(['r3', 'r2', 'r1']);
    expect(shown).toMatch(/^r2 .*\(unverified\) {2}pin {2}rate 100 → 80\/s$/m);
    expect(shown).toMatch(/Reason: why-not/);
    const json = parse((await rig.run('audit checkout --entries --json --limit 2')).stdout);
    expect(json).toMatchObject({
      schema: 1,
      next: expect.stringMatching(/^\d+-\d+$/),
      entries: [
        { revision: 3 },
        { revision: 2, reason: 'pin', hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
    });
    expect(
      parse((await rig.run('audit checkout --entries --json --since 1h')).stdout).entries,
    ).toHaveLength(3);
    expect(
      parse((await rig.run('audit checkout --entries --json --since 2090-01-01')).stdout).entries,
    ).toEqual([]);
    expect((await rig.run('audit --limit x')).code).toBe(64);
  });

  test('verify passes on a whole chain, and exits 1 naming the entry that was edited', async () => {
    await rig.run('pin checkout --rate 80 --yes');
    await rig.run('release checkout --yes');
    const good = await rig.run('audit verify');
    expect(good).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok {2}checkout: consistent/),
    });
    const head = parse((await rig.run('audit verify checkout --json')).stdout).limiters[0].head;
    expect((await rig.run(`audit verify checkout --anchor ${head}`)).stdout).toMatch(/proven/);
    const [, [id, fields] = ['', []]] = await rig.redis.xrange(keys.audit, '-', '+');
    await rig.redis.xdel(keys.audit, id);
    const bad = await rig.run('audit verify checkout');
    expect(bad).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^broken .*missing or was changed/),
    });
    expect(parse((await rig.run('audit verify --json')).stdout)).toMatchObject({ ok: false });
    expect(fields.length).toBeGreaterThan(0);
  });

  test('an entry that cannot be read stands in its place; audit and rollback go past it', async () => {
    await rig.run('pin checkout --rate 80 --yes');
    await rig.run('release checkout --yes');
    const rows = await rig.redis.xrange(keys.audit, '-', '+');
    await rig.redis.del(keys.audit);
    for (const [i, [id, fields]] of rows.entries()) {
      if (i === 1) fields[fields.indexOf('body') + 1] = '{';
      await rig.redis.xadd(keys.audit, id, ...fields);
    }
    const broken = rows[1]![0];
    const shown = (await rig.run('audit checkout --entries')).stdout;
    expect(shown.match(/^r\d+/gm)).toEqual(['r3', 'r2', 'r1']);
    expect(shown).toContain(`unreadable  entry ${broken} cannot be read`);
    expect(parse((await rig.run('audit checkout --entries --json')).stdout)).toMatchObject({
      entries: [{ revision: 3 }, { revision: 1 }],
      unreadable: [{ limiter: 'checkout', id: broken, revision: 2 }],
    });
    expect((await rig.run('rollback checkout 1 --yes')).code).toBe(0);
    expect(await rig.run('rollback checkout 2 --yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('FLYBALL_E_AUDIT_BROKEN'),
    });
    expect((await rig.run('audit verify')).stdout).toContain(broken);
  });

  test("explain of a person's verb says who wrote it; of an unknown revision what to do", async () => {
    await rig.run('pin checkout --rate 80 --yes');
    const shown = await rig.run('explain checkout 2');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(
      /not a decision {2}No law took it: .*\(unverified\) wrote it \(pin\)\.$/m,
    );
    expect(shown.stdout).toMatch(/^ {2}until: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/m);
    await rig.run('pin checkout --rate 70 --hold --yes');
    expect((await rig.run('explain checkout 3')).stdout).toMatch(/^ {2}until: a person ends it$/m);
    expect(parse((await rig.run('explain checkout 2 --json')).stdout)).toMatchObject({
      schema: 1,
      verdict: 'not_a_decision',
      entry: { revision: 2 },
    });
    expect(await rig.run('explain checkout 9')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/AUDIT_NO_REVISION/),
    });
  });
});

describe('explain: why, does it stand, how to undo it', () => {
  test('a hold that stands ends by its own verb; what was before it, and the episode', async () => {
    await log(THREE.slice(0, 2), 7200);
    await rig.run('audit checkout');
    await rig.redis.hset(keys.params, 'revision', 121);
    await rig.run('pin checkout --rate 80 --yes');
    const shown = (await rig.run('explain checkout 122')).stdout;
    expect(shown).toMatch(/^ {2}before {2}r121 \S+ \S+ d1 law_raise$/m);
    expect(shown).toMatch(/^ {2}in force for \d/m);
    expect(shown).toMatch(/^undo\n {2}flyball release checkout {3}hands it back/m);
    expect(shown).toMatch(/^ {2}flyball rollback checkout 121 --dry-run {3}shows the way/m);
    const json = parse((await rig.run('explain checkout 120 --json')).stdout);
    expect(json).toMatchObject({
      previous: null,
      next: { revision: 121, reason: 'law_raise' },
      stood: { forMs: 30_000, untilMs: expect.any(Number), cost: null },
      episode: { changes: 2, firstRevision: 120 },
      undo: [],
    });
    const cut = (await rig.run('explain checkout 121')).stdout;
    expect(cut).toMatch(
      /^ {2}episode {2}.* p99 612 ms; 400 → 200\/s; 2 changes; back at 390 \(r120–r121, 2 changes\)$/m,
    );
    expect(cut).toMatch(/^ {2}stood for 2 h/m);
    expect(cut).toMatch(/rollback checkout 120 --dry-run .*; r122 has replaced it since$/m);
  });

  test('an open breaker is ended by reset: no rollback would close it', async () => {
    await rig.run('trip checkout --hold --yes');
    const undo = async (revision: number) =>
      parse((await rig.run(`explain checkout ${revision} --json`)).stdout).undo;
    expect(await undo(2)).toEqual([
      { command: 'flyball reset checkout', does: 'closes the breaker' },
    ]);
    await rig.run('reset checkout --yes');
    expect(await undo(2)).toEqual([]);
    expect(await undo(3)).toEqual([]);
  });

  test('what was said of one subject is taken back by name, also when others came since', async () => {
    await rig.run("subject checkout it's --block --yes");
    await rig.run('pin checkout --rate 80 --yes');
    const { undo } = parse((await rig.run('explain checkout 2 --json')).stdout);
    expect(undo).toEqual([
      { command: "flyball subject checkout 'it'\\''s' --clear", does: 'takes it back' },
    ]);
  });
});

describe('entries', () => {
  const revisions = async (flags: string) =>
    parse((await rig.run(`audit checkout --json ${flags}`)).stdout).entries.map(
      (each: { revision: number }) => each.revision,
    );

  test('by who, why and what kind', async () => {
    await log([...THREE, { s: 7230, note: null, reason: 'write_refused' }], 60);
    expect(await revisions('--actor person')).toEqual([124]);
    expect(await revisions('--actor ALICE')).toEqual([124]);
    expect(await revisions('--actor autopilot --kind change')).toEqual([123, 122, 121, 120]);
    expect(await revisions('--kind note')).toEqual([124]);
    expect(await revisions('--reason law_cut,breaker_trip')).toEqual([122, 120]);
    expect(await revisions('--entries --limit 2')).toEqual([124, 124]);
    const none = await rig.run('audit checkout --reason thaw');
    expect(none).toMatchObject({ code: 0, stdout: '' });
    expect(none.stderr).toContain('checkout has no entries that match.');
  });

  test('a reason code that there is none of is an error with those there are, in each form', async () => {
    await log(THREE, 60);
    for (const form of ['', ' --json', ' --csv', ' --follow']) {
      const none = await rig.run(`audit checkout --reason law_cut,law_cuts${form}`);
      expect(none.code).toBe(64);
      expect(none.stderr).toMatch(
        /--reason law_cuts is no reason code.*Did you mean law_cut\? The newest entries have: .*law_cut/s,
      );
    }
    expect((await rig.run('audit --reason nope')).stderr).toContain('The newest entries have: ');
    // One that another version wrote is there all the same.
    await log([{ s: 0, to: { rate: 80 }, reason: 'of_another_version' }], 60);
    expect(await revisions('--reason of_another_version')).toHaveLength(1);
  });

  test('--diff: each field before and after, with its unit', async () => {
    const before = { rate: 100, inFlightMax: 0, reserve: { default: 0, sheddable: 0.2 } };
    await log([{ s: 0, to: before, sentence: 'cut.' }], 60);
    const shown = (await rig.run('audit checkout --diff')).stdout;
    expect(shown).toContain('       rate                   400/s → 100/s  (−75 %)');
    expect(shown).toContain('       in-flight cap          44 requests → none');
    expect(shown).toContain('       reserve from sheddable 0 % → 20 %');
    const [entry] = parse((await rig.run('audit checkout --diff --json')).stdout).entries;
    expect(entry.diff).toEqual([
      { field: 'rate', unit: 'per_second', before: 400, after: 100 },
      { field: 'inFlightMax', unit: 'requests', before: 44, after: 0 },
      { field: 'reserveSheddable', unit: 'share', before: 0, after: 0.2 },
    ]);
  });

  test('--csv: all of them, a line each, in CRLF; no cell is a formula', async () => {
    const evil = '=HYPERLINK("http://x","y")';
    await log(
      [
        ...THREE,
        { s: 7260, by: evil, reason: 'pin', to: { rate: 5 }, sentence: 'a, "b"\n\u202ec' },
      ],
      60,
    );
    const { stdout, code } = await rig.run('audit checkout --csv');
    expect(code).toBe(0);
    const lines = stdout.split('\r\n');
    expect(lines.at(-1)).toBe('');
    expect(lines).toHaveLength(8);
    expect(lines[0]).toMatch(
      /^time,limiter,kind,epoch,revision,actor_kind,actor,reason,mode_before,/,
    );
    expect(lines[1]).toContain(
      `,"'=HYPERLINK(""http://x"",""y"")",pin,auto,auto,closed,closed,100,5,`,
    );
    expect(lines[1]).toContain('"a, ""b""\\n\\u202ec"');
    expect(lines[2]).toContain(',person,alice@db (unverified),pin,');
    expect((await rig.run('audit checkout --csv --limit 2')).stdout.split('\r\n')).toHaveLength(4);
    expect((await rig.run('audit checkout --episode 122 --csv')).stdout.split('\r\n')).toHaveLength(
      4,
    );
  });

  test('C98: formulas, directions, markup and 10 KB come through whole in JSON, and are obeyed nowhere', async () => {
    const evil = '=cmd|\u202e\u2066\u061c\u200b\x1b]0;x\x07<script>"\r\n,';
    const long = 'x'.repeat(10_000);
    await log(
      [
        ...THREE,
        {
          s: 7260,
          by: `@${evil}`,
          reason: 'pin',
          to: { rate: 5 },
          detail: { why: evil },
          sentence: evil,
        },
        {
          s: 7270,
          by: `+${long}`,
          reason: '-2+3',
          to: { rate: 6 },
          detail: { why: long },
          sentence: long,
        },
      ],
      60,
    );
    for (const args of [
      'audit',
      'audit --entries',
      'audit --diff',
      'audit checkout --episode 122',
      'report',
    ]) {
      for (const json of [false, true]) {
        const { stdout, stderr, code } = await rig.run(`${args}${json ? ' --json' : ''}`);
        expect([args, code]).toEqual([args, 0]);
        expect(`${stdout}${stderr}`).not.toMatch(OBEYED);
        if (json) parse(stdout);
      }
    }
    const { entries } = parse((await rig.run('audit --entries --json')).stdout);
    expect(entries.slice(0, 2)).toMatchObject([
      { actor: { name: `+${long}` }, reason: '-2+3', sentence: long },
      { actor: { name: `@${evil}` }, sentence: evil, detail: { why: evil } },
    ]);
    const { stdout } = await rig.run('audit --csv');
    expect(stdout.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    expect(stdout).not.toMatch(OBEYED);
    expect(stdout).not.toMatch(/(^|,)"?[=@+-](?!\d)/m);
    expect(stdout).toContain(",'-2+3,");
    expect(stdout).toContain(`,'+${long},`);
  });

  test('flags that contradict each other, and values that are none', async () => {
    for (const [args, said] of [
      ['audit checkout --csv --json', '--csv and --json are two forms. Take one of them.'],
      ['audit --episode 3', '--episode is of one limiter, and none is named.'],
      ['audit checkout --episode x', '"x" is no episode. Write a revision in it (120)'],
      [
        'audit checkout --episode 3 --since 2h',
        '--episode shows all of one episode, so --since has no place.',
      ],
      [
        'audit checkout --follow --until 2h',
        '--follow waits for what comes, so --until has no place.',
      ],
      ['audit checkout --kind foo', 'Allowed choices are change, note.'],
      ['audit checkout --reason Law-Cut', '"Law-Cut" is no list of reason codes.'],
      ['audit checkout --since yesterday', '"yesterday" is no time.'],
      ['audit checkout --before x', 'before is "x", and no place in the log.'],
      ['audit chekout', 'Did you mean checkout?'],
    ] as const) {
      const shown = await rig.run(args);
      expect(shown, args).toMatchObject({
        code: 64,
        stdout: args.includes('--json') ? expect.any(String) : '',
      });
      expect(shown.stderr, args).toContain(said);
    }
  });

  test('with every daemon dead and no log, it says so', async () => {
    await rig.redis.del(keys.audit);
    expect((await rig.run('audit checkout')).stderr).toContain(
      'checkout has not changed: the log is empty.',
    );
    await rig.redis.flushall();
    expect(await cli(['audit'], { env: rig.env })).toMatchObject({ code: 0, stdout: '' });
  });
});
