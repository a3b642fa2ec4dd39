/** The rollout verb and the adoption of a policy's rollout, as pure functions: what stands, and what is said. */
import { describe, expect, test } from 'vitest';
import { adoptedParams, createdParams } from '../../src/actuate/adopted-params.js';
import type { Facts, VerbPlan } from '../../src/actuate/verbs/plan.js';
import { type RolloutWish, rollout } from '../../src/actuate/verbs/rollout.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { parseRollout, type Rollout } from '../../src/redis/rollout.js';
import { NOW_MS, params } from '../support/cli-params.js';

type Own = NonNullable<PolicyInput['limiter']['rollout']>;

function policyWith(own?: Own, rate = 100) {
  return policySchema.parse({
    limiter: { name: 'checkout', rate, capacity: 200, ...(own && { rollout: own }) },
    mode: 'recommend',
  });
}

function facts(stands: string, own?: Own, mode: 'recommend' | 'auto' | 'shadow' = 'recommend') {
  return {
    limiter: 'checkout',
    params: params({ rollout: stands, mode, inFlightMax: 24 }),
    nowMs: NOW_MS,
    policy: policyWith(own),
    actor: 'ada@host (unverified)',
  } satisfies Facts;
}

function made(wish: RolloutWish, given: Facts): VerbPlan {
  const plan = rollout(wish)(given);
  if (plan.kind === 'nothing') throw new Error(plan.sentence);
  return plan;
}

const text = (wish: RolloutWish, stands = '', own?: Own) =>
  made(wish, facts(stands, own)).change.rollout!;
const said = (of: string): Omit<Rollout, 'over'> | null => {
  const { over: _, ...rest } = parseRollout(of) ?? { percent: 100 };
  return rest;
};

describe('the verb', () => {
  test('step by step: one subject, 1 %, 10 %, all; what is not named stays', () => {
    const one = text({ percent: 0, subjects: ['user:42'] });
    expect(said(one)).toEqual({ percent: 0, subjects: ['user:42'] });
    const more = text({ percent: 1 }, one);
    expect(said(more)).toEqual({ percent: 1, subjects: ['user:42'] });
    const two = text({ subjects: ['user:7', 'user:42'] }, more);
    expect(said(two)).toEqual({ percent: 1, subjects: ['user:42', 'user:7'] });
    expect(said(text({ drop: ['user:42'] }, two))).toEqual({ percent: 1, subjects: ['user:7'] });
    expect(said(text({ by: 'request', percent: 2.5 }, more))).toMatchObject({ by: 'request' });
    // Nothing of it is left: the policy has no rollout of its own.
    expect(text({ done: true }, two)).toBe('');
    expect(text({ percent: 100 }, two)).toBe('');
  });

  test('one revision whose sentence and detail say from where to where; numbers stay', () => {
    const plan = made({ percent: 10 }, facts('{"percent":1}', { percent: 1 }));
    expect(plan).toMatchObject({ reason: 'rollout', basis: '{"percent":1}' });
    expect(plan.sentence).toBe(
      'ada@host (unverified) set the rollout of checkout: enforced for 1 % of the subjects → 10 % of the subjects.',
    );
    expect(plan.before).toEqual(plan.after);
    expect(Object.keys(plan.change).sort()).toEqual(['rollout', 'state']);
    expect(plan.detail.rollout).toMatchObject({ before: { percent: 1 }, after: { percent: 10 } });
  });

  test('what a person should know before saying yes', () => {
    const notes = (wish: RolloutWish, given: Facts) => made(wish, given).notes.join(' ');
    expect(notes({ percent: 10 }, facts(''))).toMatch(/So far it is enforced for all/);
    expect(notes({ percent: 1 }, facts('{"percent":10}'))).toMatch(/Lowered/);
    expect(notes({ percent: 20 }, facts('{"percent":10}'))).not.toMatch(/Lowered|So far/);
    expect(notes({ percent: 20 }, facts('{"percent":10}'))).toMatch(/total rate and the in-flight/);
    expect(notes({ percent: 1 }, facts('', undefined, 'shadow'))).toMatch(/Mode shadow admits all/);
    expect(notes({ percent: 1 }, facts('', undefined, 'auto'))).toMatch(/Mode auto/);
    expect(notes({ done: true }, facts('{"percent":10}'))).toBe('');
  });

  test.each<[RolloutWish, string, RegExp]>([
    [{}, '', /give percent, subjects, drop or by; or done alone; or release alone/],
    [{ percent: 1, done: true }, '', /give percent/],
    [{ done: true, release: true }, '', /give percent/],
    [{ subjects: ['a'] }, '', /is enforced for all: say the share/],
    [{ percent: 101 }, '', /^percent is 101; 0 … 100/],
    [{ percent: 0.001 }, '', /two decimals/],
    [{ percent: 1, subjects: [''] }, '', /0 characters; 1 … 256/],
    [{ percent: 1, subjects: Array.from({ length: 101 }, (_, i) => `${i}`) }, '', /more than 100/],
    [
      { percent: 1, subjects: Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(200)) },
      '',
      /more than 8192 bytes/,
    ],
  ])('refuses %j on %j', (wish, stands, why) => {
    expect(() => rollout(wish)(facts(stands))).toThrow(why);
  });

  test('nothing to do is said', () => {
    const nothing = (wish: RolloutWish, stands: string, own?: Own) =>
      rollout(wish)(facts(stands, own));
    expect(nothing({ percent: 1 }, '{"percent":1}', { percent: 1 })).toMatchObject({
      kind: 'nothing',
      sentence: 'checkout is enforced for 1 % of the subjects already.',
    });
    expect(nothing({ done: true }, '')).toMatchObject({ kind: 'nothing' });
    expect(nothing({ release: true }, '{"percent":1}', { percent: 1 })).toMatchObject({
      sentence: "The rollout of checkout is the policy's own.",
    });
  });
});

describe('a person’s rollout stands until the file changes that very field', () => {
  const adopted = (own: Own | undefined, stands: string, rate = 100) =>
    adoptedParams(
      { file: 'x.ts', policy: policyWith(own, rate), hash: 'b'.repeat(64), json: '{}' },
      params({ rollout: stands, mode: 'recommend' }),
      NOW_MS,
    );

  test.each<[string, Own | undefined, RolloutWish]>([
    ['a larger share', { percent: 1 }, { percent: 10 }],
    ['for all', { percent: 1 }, { done: true }],
    ['where the file has none', undefined, { percent: 5 }],
  ])('%s: another field of the file leaves it alone, this one ends it', (_, own, wish) => {
    const stands = text(wish, own ? '{"percent":1}' : '', own);
    const kept = adopted(own, stands, 150);
    expect(kept.change.rollout).toBe(stands);
    expect(kept.sentence).toContain('the rollout that a person set stays');
    const ended = adopted({ percent: 50 }, stands);
    expect(ended.change.rollout).toBe('{"percent":50}');
    expect(ended.sentence).toMatch(/; rollout .* → 50 % of the subjects\.$/);
  });

  test('the policy’s own follows the file', () => {
    expect(adopted({ percent: 10 }, '{"percent":1}').change.rollout).toBe('{"percent":10}');
    expect(adopted(undefined, '{"percent":1}').change.rollout).toBe('');
    expect(adopted(undefined, '').sentence).not.toContain('rollout');
  });

  test('--release gives it back', () => {
    const own = { percent: 1, subjects: ['a'] };
    const stands = text({ percent: 10 }, '{"percent":1,"subjects":["a"]}', own);
    const plan = made({ release: true }, facts(stands, own));
    expect(plan.change.rollout).toBe('{"percent":1,"subjects":["a"]}');
    expect(plan.sentence).toContain('gave the rollout of checkout back to its policy');
  });
});

test('params that Redis lost come back with the rollout that stood; a fresh limiter has the policy’s', () => {
  const loaded = {
    file: 'x.ts',
    policy: policyWith({ percent: 1 }),
    hash: 'a'.repeat(64),
    json: '',
  };
  const last = params({ rollout: text({ percent: 10 }, '{"percent":1}', { percent: 1 }) });
  expect(createdParams(loaded, last, 0).change.rollout).toBe(last.rollout);
  expect(createdParams(loaded, null, 0).change.rollout).toBe('{"percent":1}');
});

describe('in a policy', () => {
  const faults = (limiter: object) =>
    (
      parsePolicy({ limiter: { name: 'a', rate: 1, capacity: 1, ...limiter } }, 'x.ts').faults ?? []
    ).map(({ field, message }) => `${field} ${message}`);

  test.each<[object, RegExp]>([
    [{ rollout: { percent: 1, subjects: ['user:42'], by: 'subject' } }, /^$/],
    [{ rollout: { percent: 0.29 } }, /^$/],
    [{ rollout: {} }, /^limiter\.rollout\.percent is missing/],
    [
      { rollout: { percent: '1%' } },
      /^limiter\.rollout\.percent is "1%", not a number \(percent\)/,
    ],
    [{ rollout: { percent: 1.234 } }, /two decimals are the finest part/],
    [{ rollout: { percent: 1, subject: 'a' } }, /Did you mean subjects\?/],
    [{ rollout: { percent: 1, by: 'ip' } }, /not one of "subject", "request"/],
    [{ rollout: { percent: 1, subjects: [''] } }, /not a subject of 1 to 256 characters/],
    [
      {
        rollout: { percent: 1, subjects: Array.from({ length: 50 }, (_, i) => `${i}`.padEnd(200)) },
      },
      /take more than 7168 bytes/,
    ],
    [{ routes: ['POST /api/pay/**', '/x/:id'] }, /^$/],
    [{ routes: ['pay'] }, /is "pay", not a route \('POST \/api\/pay\/\*\*', or a path alone\)/],
    [{ routes: ['/users/{id}'] }, /neither text nor a wildcard\. Write '\*' or ':id'/],
    [{ routes: ['/a?b'] }, /a route has no query/],
    [{ routes: Array.from({ length: 65 }, (_, i) => `/${i}`) }, /more than 64 routes/],
  ])('%j', (limiter, fault) => {
    expect(faults(limiter).join('\n')).toMatch(fault);
  });
});
