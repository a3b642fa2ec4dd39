/** The breaker guide in step: its policies load, its levels trip, its tables and sentences are what is decided. */
import { expect, test } from 'vitest';
import * as words from '../../src/policy/author.js';
import { parsePolicy } from '../../src/policy/parse.js';
import type { Policy } from '../../src/policy/schema.js';
import { upstreamWarnings } from '../../src/policy/upstream.js';
import {
  createDecideState,
  createEstimateState,
  type Decision,
  estimate,
  type TelemetryReading,
  turn,
} from '../../src/testing.js';
import { binsOf, readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';
import { read } from '../support/source-tree.js';

const GUIDE = read('docs/guides/breaker.md');
const blocks = [...GUIDE.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);

/** What a snippet exports, as a policy file would; `known` is what it imports from a file of the author's. */
function exported(code: string, known: object = {}): unknown {
  const body = code
    .replace(/^import .*$/gm, '')
    .replace(/export default /, 'return ')
    .replace(/export const \w+ = /, 'return ');
  const given: Record<string, unknown> = { ...words, ...known };
  return new Function(...Object.keys(given), body)(...Object.values(given));
}

function policyOf(input: unknown): Policy {
  const result = parsePolicy(input, 'guide');
  if (result.faults !== undefined) throw new Error(JSON.stringify(result.faults));
  return result.policy;
}

const [levels, proportional, shared, refund] = blocks;
const START_MS = 1_700_000_000_000;

/** The first decision that leaves `closed`, of seconds alike. */
function opens(
  policy: Policy,
  second: Partial<TelemetryReading>,
  waits = 0,
  most = 120,
): Decision | null {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  for (let i = 0; i < most; i++) {
    const toMs = START_MS + 1000 * i;
    const { ok = 100, failed = 0, codes = {} } = second;
    const reading = telemetryOf(toMs, { generation: { id: 0, ok, failed, codes }, ...second });
    const value = { kind: 'value', value: waits, atMs: toMs, count: 1 } as const;
    const next = estimate(policy, estimates, readingsOf(toMs, reading, { waits: value }), 1000);
    estimates = next.state;
    const turned = turn(policy, state, { ...sampleOf({ nowMs: toMs }), ...next.estimates });
    state = turned.state;
    if (turned.decision.state !== 'closed') return turned.decision;
  }
  return null;
}

test('its policies are whole, and the snippets are all of them', () => {
  expect(blocks).toHaveLength(4);
  expect(policyOf(exported(levels!)).breaker?.or).toHaveLength(5);
  expect(policyOf(exported(proportional!)).breaker?.shed).toBe('proportional');
  const wechatPay = exported(shared!);
  const one = policyOf(exported(refund!, { wechatPay }));
  expect(one.breaker?.upstream).toBe('wechat-pay');
  const pay = policyOf(exported(refund!.replace("name: 'refund'", "name: 'pay'"), { wechatPay }));
  expect(upstreamWarnings([one, pay])).toEqual([]);
  const other = { ...pay, breaker: { ...pay.breaker!, openFor: 9000 } };
  expect(upstreamWarnings([one, other])).toEqual([
    expect.stringMatching(
      /^upstream wechat-pay: the policies of refund, pay do not agree on openFor/,
    ),
  ]);
});

test('each level of the first example opens it, in the words of the guide', () => {
  const policy = policyOf(exported(levels!));
  expect(opens(policy, {})).toBeNull();
  const codes = { SYSTEMERROR: 3 };
  const bank = { bank: { ok: 0, failed: 3, codes } };
  const slow = binsOf([...Array(30).fill(100), ...Array(70).fill(2500)]);
  const seen = [
    opens(policy, { ok: 30, failed: 70 }),
    opens(policy, { ok: 500, failed: 3, codes, upstreams: bank }),
    opens(policy, { ok: 0, failed: 1 }),
    opens(policy, { ok: 45, failed: 55, timedOut: 55 }),
    opens(policy, { latency: slow }),
    opens(policy, {}, 40),
  ].map((decision) => decision?.sentence);
  expect(seen[0]).toMatch(/^70 failures of 100 answers in 2 s; open for 5 s/);
  expect(seen[1]).toMatch(/^102 failures \(SYSTEMERROR\) of \d+ answers in 60 s/);
  expect(seen[2]).toMatch(/^(10 failures of 10 answers in 10 s|21 failures in a row)/);
  expect(GUIDE).toContain(`    ${seen[3]}\n`);
  expect(seen[4]).toMatch(/^210 slower than 2000 ms of 300 answers in 5 s/);
  expect(seen[5]).toMatch(/^waits 40, above 30 for 10 s/);
});

test('the table of what is shed', () => {
  const policy = policyOf(exported(proportional!));
  const row = (name: string) =>
    new RegExp(`^\\| ${name} \\|(.*)\\|$`, 'm')
      .exec(GUIDE)![1]!
      .split('|')
      .map((cell) => cell.trim());
  const shares = row('share of failures').map((cell) => Number.parseFloat(cell) / 100);
  const shed = shares.map((share) => {
    const failed = Math.round(10_000 * share);
    const decision = opens(policy, { ok: 10_000 - failed, failed });
    if (decision === null) return 'none';
    expect(decision).toMatchObject({ state: 'recovering', reason: 'breaker_shed' });
    return decision.rate === policy.breaker!.probeRate
      ? 'all but `probeRate`'
      : `${Math.round(100 - decision.rate)} %`;
  });
  expect(shed).toEqual(row('shed'));
});
