/** `flyball audit` and `explain` on a real Redis with every daemon dead. */
import { describe, expect, test } from 'vitest';
import { keys, readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);

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
    expect(parse((await rig.run('audit checkout --entries --json --since 1h')).stdout).entries).toHaveLength(
      3,
    );
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
      /not a decision {2}No law took it: .*\(unverified\) wrote it \(pin\)/,
    );
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
