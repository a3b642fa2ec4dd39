/** Completion in real shells: what bash, zsh and fish offer at each place of a command line. Stage: tests. */
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { completionScript, SHELLS, type Shell } from '../../src/cli/completion-scripts.js';
import { allOf, specOf } from '../../src/cli/completion-spec.js';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';
import { cli } from '../support/cli-run.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder('completion');
const file = (shell: Shell) => join(folder, `flyball.${shell}`);
let spec: ReturnType<typeof specOf>;

beforeAll(async () => {
  spec = specOf(createProgram(createIo(), await registersFor(['completion'])));
  for (const shell of SHELLS) writeFileSync(file(shell), completionScript(shell, spec));
  // Stands for the program: it says with which words it was asked.
  writeFileSync(
    join(folder, 'flyball'),
    `#!/bin/sh\nprintf '%s ' "$@" >> ${folder}/asked\nprintf 'checkout\\norders-db\\n'\n`,
  );
  chmodSync(join(folder, 'flyball'), 0o755);
  writeFileSync(join(folder, 'policy-here.ts'), '');
});

/** What is offered with the cursor at the end of these words. */
const ASK: Record<Shell, (words: string[]) => [command: string, ...args: string[]]> = {
  bash: (words) => [
    'bash',
    '--norc',
    '-c',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's.
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { echo FILES; }; _flyball; printf "%s\\n" "${COMPREPLY[@]}"',
    'bash',
    file('bash'),
    ...words,
  ],
  zsh: (words) => [
    'zsh',
    '-f',
    '-c',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's.
    'compdef() { :; }; _files() { print FILES; }; _describe() { print -rl -- "${(@P)2}"; }; source "$1"; shift; words=("$@"); CURRENT=$#; _flyball',
    'zsh',
    file('zsh'),
    ...words,
  ],
  fish: (words) => [
    'fish',
    '--no-config',
    '-c',
    `source ${file('fish')}; complete -C '${words.join(' ')}'`,
  ],
};

function offered(shell: Shell, line: string): string[] {
  const words = line.split(' ');
  const [command, ...args] = ASK[shell](words);
  const ran = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder },
  });
  expect(ran.stderr).toBe('');
  const last = words.at(-1)!;
  return ran.stdout
    .split('\n')
    .map((each) => each.split(shell === 'zsh' ? /(?<!\\):/ : '\t')[0]!.trim())
    .filter((word) => word !== '' && (word === 'FILES' || word.startsWith(last)));
}

describe.each(SHELLS)('%s', (shell) => {
  test('commands, and those below a command', () => {
    const all = offered(shell, 'flyball ');
    expect(all.sort()).toEqual(spec.commands.map(({ name }) => name).sort());
    expect(offered(shell, 'flyball ro').sort()).toEqual(['rollback', 'rollout']);
    expect(offered(shell, 'flyball --json ro').sort()).toEqual(['rollback', 'rollout']);
    expect(offered(shell, 'flyball notify ')).toEqual(['test']);
    expect(offered(shell, 'flyball audit v')).toContain('verify');
  });

  test('options of the command, and of all', () => {
    const options = offered(shell, 'flyball rollback --');
    for (const each of [
      '--last',
      '--good',
      '--before',
      '--dry-run',
      '--json',
      '--redis',
      '--help',
    ]) {
      expect(options).toContain(each);
    }
    expect(options).not.toContain('--in-flight');
    expect(offered(shell, 'flyball pin checkout --in')).toEqual(['--in-flight']);
  });

  test('names of limiters where a limiter is due, and with the words typed so far', () => {
    expect(offered(shell, 'flyball rollback ').sort()).toEqual(['checkout', 'orders-db']);
    expect(offered(shell, 'flyball pin --rate 80 o')).toEqual(['orders-db']);
    expect(offered(shell, 'flyball --redis redis://r:1 status c')).toEqual(['checkout']);
  });

  test('values that an option or an argument may have; files where a file is due; nothing of another', () => {
    expect(offered(shell, 'flyball rollout checkout --by ').sort()).toEqual(['request', 'subject']);
    expect(offered(shell, 'flyball completion ').sort()).toEqual(['bash', 'fish', 'zsh']);
    const files = offered(shell, 'flyball check ');
    expect(files).toEqual([shell === 'fish' ? expect.any(String) : 'FILES', ...files.slice(1)]);
    expect(offered(shell, 'flyball rollback checkout ')).toEqual([]);
    expect(offered(shell, 'flyball pin checkout --reason ')).toEqual([]);
  });
});

test('every command and every option of the program stands in each script', () => {
  for (const shell of SHELLS) {
    const script = completionScript(shell, spec);
    for (const { path, options } of allOf(spec)) {
      expect(script).toContain(path);
      for (const { long } of options) {
        expect(script).toContain(shell === 'fish' ? `-l ${long.slice(2)}` : long);
      }
    }
  }
});

test('the script and its JSON form; a shell that is not known is told which are', async () => {
  const plain = await cli(['completion', 'bash']);
  expect(plain).toMatchObject({ code: 0, stderr: '' });
  expect(plain.stdout).toBe(completionScript('bash', spec));
  const json = JSON.parse((await cli(['completion', 'zsh', '--json'])).stdout);
  expect(json).toEqual({ schema: 1, shell: 'zsh', script: completionScript('zsh', spec) });
  const wrong = await cli(['completion', 'tcsh']);
  expect(wrong.code).toBe(64);
  expect(wrong.stderr).toContain('Allowed choices are bash, zsh, fish');
});
