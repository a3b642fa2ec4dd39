/** The dashboard's questions: what is shown while a later answer is on its way, late, or does not come. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Answered,
  type Asker,
  createAsker,
  keptForMs,
} from '../../src/dashboard/data/asker.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Each question waits until the test answers it. */
function asking(everyMs?: number) {
  const questions: { answer: (value: string) => void; refuse: (error: Error) => void }[] = [];
  const said: Answered<string>[] = [];
  const page = { everyMs, looked: true };
  const asker: Asker = createAsker<string>({
    ask: () =>
      new Promise((answer, refuse) => {
        questions.push({ answer, refuse });
      }),
    everyMs: () => page.everyMs,
    looked: () => page.looked,
    monotonicMs: () => Date.now(),
    say: (answered) => said.push(answered),
  });
  const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { asker, questions, page, said, newest: () => said.at(-1)!, wait };
}

describe('an answer stays', () => {
  test('while the next is on its way, and while the next fails', async () => {
    const { asker, questions, newest, wait } = asking();
    expect(newest()).toMatchObject({ value: null, fault: null });
    questions[0]!.answer('first');
    await wait(0);
    expect(newest()).toMatchObject({ value: 'first', fault: null, askingSinceMs: null });
    asker.again();
    expect(newest().value).toBe('first');
    await wait(4000);
    expect(keptForMs(newest(), Date.now())).toBe(4000);
    questions[1]!.refuse(new Error('the daemon cannot be reached'));
    await wait(0);
    expect(newest()).toMatchObject({ value: 'first', fault: 'the daemon cannot be reached' });
    await wait(1000);
    expect(keptForMs(newest(), Date.now())).toBe(5000);
    asker.again();
    questions[2]!.answer('second');
    await wait(0);
    expect(newest()).toMatchObject({ value: 'second', fault: null });
    expect(keptForMs(newest(), Date.now())).toBeNull();
  });

  test('its age is no news until its successor is late', async () => {
    const { asker, questions, newest, wait } = asking();
    expect(keptForMs(newest(), Date.now() + 60_000)).toBeNull();
    questions[0]!.answer('first');
    await wait(60_000);
    expect(keptForMs(newest(), Date.now())).toBeNull();
    asker.again();
    await wait(500);
    expect(keptForMs(newest(), Date.now())).toBeNull();
  });
});

describe('one question at a time', () => {
  test('told while one is on its way, it asks once more, right after it', async () => {
    const { asker, questions, newest, wait } = asking();
    asker.again();
    asker.again();
    expect(questions).toHaveLength(1);
    questions[0]!.answer('first');
    await wait(0);
    expect(newest().value).toBe('first');
    expect(questions).toHaveLength(2);
    questions[1]!.answer('second');
    await wait(60_000);
    expect(newest().value).toBe('second');
    expect(questions).toHaveLength(2);
  });

  test('in turns, counted from the answer: one that takes longer than a turn is shown all the same', async () => {
    const { questions, newest, wait } = asking(5000);
    await wait(12_000);
    expect(questions).toHaveLength(1);
    questions[0]!.answer('slow');
    await wait(0);
    expect(newest().value).toBe('slow');
    await wait(4999);
    expect(questions).toHaveLength(1);
    await wait(1);
    expect(questions).toHaveLength(2);
    questions[1]!.refuse(new Error('no'));
    await wait(5000);
    expect(questions).toHaveLength(3);
  });

  test('none by itself while nobody looks, and none at all after its end', async () => {
    const { asker, questions, page, said, wait } = asking(5000);
    questions[0]!.answer('first');
    page.looked = false;
    await wait(20_000);
    expect(questions).toHaveLength(1);
    page.looked = true;
    await wait(5000);
    expect(questions).toHaveLength(2);
    asker.close();
    const heard = said.length;
    questions[1]!.answer('too late');
    asker.again();
    await wait(20_000);
    expect(said).toHaveLength(heard);
    expect(questions).toHaveLength(2);
  });
});
