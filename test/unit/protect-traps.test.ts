/** The local breaker of `protect`: each way in which a breaker of this kind is known to end in a wrong state. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Circuit,
  type CircuitOptions,
  createCircuit,
} from '../../src/enforce/protect-circuit.js';
import { resolveBreaker } from '../../src/enforce/protect-options.js';

const OPEN_MS = 20;
const made: Circuit[] = [];
let openings = 0;
// A machine that stands still must not end what is open.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(() => {
  for (const each of made.splice(0)) each.close();
  openings = 0;
  vi.useRealTimers();
});

function circuit(options: Partial<CircuitOptions> = {}): Circuit {
  const terms = { ...resolveBreaker(undefined)!, onOpen: () => void openings++, ...options };
  const one = createCircuit(terms, () => performance.now());
  made.push(one);
  return one;
}

/** opossum settles what it is told a turn later. */
const settled = () => new Promise((ok) => setImmediate(ok));

async function calls(one: Circuit, n: number, good: boolean): Promise<void> {
  for (let i = 0; i < n; i++) one.enter()?.settle(good);
  await settled();
}

function halfOpens(one: Circuit): void {
  vi.advanceTimersByTime(OPEN_MS);
  expect(one.state).toBe('half-open');
}

async function tripped(options: Partial<CircuitOptions> = {}): Promise<Circuit> {
  const one = circuit({ volumeThreshold: 4, openMs: OPEN_MS, ...options });
  await calls(one, 4, false);
  expect(one.state).toBe('open');
  return one;
}

describe('it opens', () => {
  test('not on the first failure, nor on any before there are twenty calls', async () => {
    const one = circuit();
    await calls(one, 19, false);
    expect(one.state).toBe('closed');
    await calls(one, 1, false);
    expect([one.state, openings]).toEqual(['open', 1]);
  });

  test('not by failures of a share that it allows', async () => {
    const one = circuit({ volumeThreshold: 4 });
    for (let i = 0; i < 50; i++) {
      await calls(one, 1, i % 3 > 0);
    }
    expect(one.state).toBe('closed');
  });

  test('once, however many calls of the same moment fail', async () => {
    const one = circuit({ volumeThreshold: 4 });
    const entries = Array.from({ length: 30 }, () => one.enter()!);
    for (const entry of entries) entry.settle(false);
    await settled();
    expect([one.state, openings]).toEqual(['open', 1]);
  });

  test('not by calls that say nothing of the upstream', async () => {
    const one = circuit({ volumeThreshold: 4 });
    for (let i = 0; i < 50; i++) one.enter()?.leave();
    await settled();
    expect(one.state).toBe('closed');
    await calls(one, 3, false);
    expect(one.state).toBe('closed');
  });
});

describe('half-open', () => {
  test('one probe at a time; one that says nothing makes room for the next', async () => {
    const one = await tripped();
    halfOpens(one);
    const probe = one.enter();
    expect([probe === null, one.enter()]).toEqual([false, null]);
    probe!.leave();
    expect(one.enter()).not.toBeNull();
  });

  test('a probe that settles twice has one say', async () => {
    const one = await tripped();
    halfOpens(one);
    const probe = one.enter()!;
    probe.settle(false);
    await settled();
    halfOpens(one);
    probe.settle(true);
    await settled();
    expect(one.state).toBe('half-open');
    expect(one.enter()).not.toBeNull();
  });

  test('one failed probe opens it again, though there are fewer calls than the least', async () => {
    const one = await tripped({ windowMs: 100, volumeThreshold: 4 });
    halfOpens(one);
    await calls(one, 1, false);
    expect(one.state).toBe('open');
  });

  test('results of calls from before it opened neither close nor open it', async () => {
    const one = circuit({ volumeThreshold: 4, openMs: OPEN_MS });
    const late = Array.from({ length: 6 }, () => one.enter()!);
    await calls(one, 4, false);
    late[0]!.settle(true);
    await settled();
    expect(one.state).toBe('open');
    halfOpens(one);
    late[1]!.settle(true);
    late[2]!.settle(false);
    await settled();
    expect(one.state).toBe('half-open');
    one.enter()!.settle(true);
    await settled();
    expect(one.state).toBe('closed');
    for (const each of late.slice(3)) each.settle(false);
    await calls(one, 3, false);
    expect(one.state).toBe('closed');
  });
});

test('closed again, it counts anew: the failures of before do not open it at the next one', async () => {
  const one = await tripped({ windowMs: 60_000 });
  halfOpens(one);
  await calls(one, 1, true);
  expect(one.state).toBe('closed');
  await calls(one, 3, false);
  expect([one.state, openings]).toEqual(['closed', 1]);
  await calls(one, 1, false);
  expect([one.state, openings]).toEqual(['open', 2]);
});

describe('the fleet leads', () => {
  test('open by it, every call still asks: the take tells when that ends', async () => {
    const one = circuit({ openMs: 10 });
    one.follow('open', true);
    expect([one.state, openings]).toEqual(['open', 0]);
    vi.advanceTimersByTime(30);
    // Its own time is over; the fleet's is not.
    expect(one.state).toBe('open');
    expect(one.enter()).not.toBeNull();
    one.follow('half-open', false);
    expect(one.state).toBe('open');
    one.follow('recovering', false);
    expect(one.state).toBe('closed');
  });

  test('a probe of its own does not close what the fleet has opened meanwhile', async () => {
    const one = await tripped();
    halfOpens(one);
    const probe = one.enter()!;
    one.follow('open', true);
    probe.settle(true);
    await settled();
    expect(one.state).toBe('open');
  });

  test("the fleet's probes are the fleet's to judge: one that fails here opens nothing by itself", async () => {
    const one = circuit({ volumeThreshold: 1, openMs: 10 });
    one.follow('open', true);
    one.follow('half-open', false);
    await calls(one, 5, false);
    one.follow('closed', false);
    expect(one.state).toBe('closed');
    await calls(one, 1, true);
    expect([one.state, openings]).toEqual(['closed', 0]);
  });

  test('a denial for want of tokens while it is half-open is no word of it', () => {
    const one = circuit();
    one.follow('half-open', false);
    expect(one.state).toBe('closed');
  });
});

test('ended, it lets its process end: no timer of its own is left', async () => {
  const one = await tripped({ openMs: 60_000 });
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  one.close();
  made.length = 0;
  expect(vi.getTimerCount()).toBe(0);
});
