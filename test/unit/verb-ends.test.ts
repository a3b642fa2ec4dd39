/** What is said to end a hold: commands and flags that exist, for every verb that holds. */
import { expect, test } from 'vitest';
import { begunBy, type Endable, endCommand, endOf } from '../../src/actuate/verbs/ends.js';
import { REASON_CODES } from '../../src/audit/episode-cause.js';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';

const ALL: readonly Endable[] = ['pinned', 'frozen', 'open', 'bounds', 'mode', 'rollout'];

test('the command that ends it is one of the program’s, with that flag', async () => {
  const program = createProgram(createIo(), await registersFor([]));
  for (const what of ALL) {
    const [flyball, verb, limiter, flag] = endCommand(what, 'checkout').split(' ');
    expect([flyball, limiter]).toEqual(['flyball', 'checkout']);
    const command = program.commands.find((one) => one.name() === verb);
    expect(command, verb).toBeDefined();
    if (flag !== undefined) expect(command!.options.map(({ long }) => long)).toContain(flag);
  }
});

test('each kind is begun by a reason code that entries have, and told in words', () => {
  const begun = REASON_CODES.map((reason) => begunBy(reason));
  for (const what of ALL) {
    expect(begun).toContain(what);
    expect(endOf(what, 'checkout').does).not.toBe('');
  }
  expect(begunBy('law_cut')).toBeNull();
  expect(begunBy('constructor')).toBeNull();
});
