import { expect, test } from 'vitest';
import {
  markNoted,
  moveWouldBe,
  noteDue,
  startWouldBe,
  wouldBeView,
} from '../../src/daemon/would-be.js';
import type { Decision, InForceView } from '../../src/decide/types.js';
import type { Params } from '../../src/redis/params.js';

const NOW = 1_700_000_000_000;
const params = {
  mode: 'recommend',
  rate: 100,
  capacity: 200,
  inFlightMax: 20,
  probeRate: 2,
  policyHash: 'abc',
} as Params;
const view = { rate: 100, held: 'none', mode: 'recommend', target: {} } as InForceView;
const decision = (changes: Partial<Decision>) =>
  ({ state: 'closed', rate: 100, capacity: 200, inFlightMax: 20, ...changes }) as Decision;

test('the law sees its own values, not those in force', () => {
  const moved = moveWouldBe(startWouldBe(params, NOW), decision({ rate: 60 }), NOW + 1000);
  const seen = wouldBeView(moved, params, view, NOW + 3000).view;
  expect(seen).toMatchObject({
    mode: 'recommend',
    rate: 60,
    target: { rate: 60, capacity: 200, inFlightMax: 20 },
    sinceChangeMs: 2000,
  });
});

test('a would-be trip opens, half-opens by time and keeps its target', () => {
  const open = decision({ state: 'open', openForMs: 5000 });
  const tripped = moveWouldBe(startWouldBe(params, NOW), open, NOW);
  expect(wouldBeView(tripped, params, view, NOW + 4999).view).toMatchObject({
    state: 'open',
    rate: 0,
    target: { rate: 100 },
  });
  const later = wouldBeView(tripped, params, view, NOW + 6000);
  expect(later.view).toMatchObject({ state: 'half-open', rate: 2, capacity: 2, inStateMs: 1000 });
  expect(later.wouldBe.state).toBe('half-open');
});

test('notes: beyond the dead band, at most one a minute', () => {
  const start = startWouldBe(params, NOW);
  expect(noteDue(start, 0.03, NOW)).toBe(false);
  expect(noteDue(moveWouldBe(start, decision({ rate: 98 }), NOW), 0.03, NOW)).toBe(false);
  const moved = moveWouldBe(start, decision({ rate: 80 }), NOW);
  expect(noteDue(moved, 0.03, NOW)).toBe(true);
  const noted = markNoted(moved, NOW);
  const again = moveWouldBe(noted, decision({ rate: 64, inFlightMax: 10 }), NOW + 10_000);
  expect(noteDue(again, 0.03, NOW + 59_999)).toBe(false);
  expect(noteDue(again, 0.03, NOW + 60_000)).toBe(true);
  expect(noteDue(noted, 0.03, NOW + 60_000)).toBe(false);
});
