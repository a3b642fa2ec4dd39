/** `flyball init` at a terminal of its own: what it asks in which order, Enter, answers that are not allowed, Ctrl-C. Stage: tests. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../support/daemon.js';
import { tempFolder } from '../support/temp-folder.js';
import { type RealTerminal, realTerminal } from '../support/terminal.js';

let folder: string;
let terminal: RealTerminal;

beforeEach(() => {
  folder = tempFolder('init-terminal');
  const dependencies = { express: '5' };
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'orders', type: 'module', dependencies }),
  );
});
afterEach(async () => {
  // Nothing hears it where the command has ended.
  terminal.signal(9);
  await terminal.ended;
});

const ENV = {
  // Nobody listens there: what this machine runs must not be found.
  FLYBALL_REDIS_URL: 'redis://127.0.0.1:1',
  DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/orders',
  NO_COLOR: '1',
};

function begin(args: string): void {
  terminal = realTerminal(args.split(' '), ENV, folder);
}

/** What it said, without the terminal's own orders. */
const said = () => stripVTControlCharacters(terminal.all()).replace(/\r/g, '');
const times = (text: string) => said().split(text).length - 1;

/** Waits for a question, for the second time where it says so, and answers it. */
async function answer(question: string, keys: string, asked = 1): Promise<void> {
  await until(question, async () => times(question) >= asked, 30_000);
  terminal.type(keys);
}

const NAME = 'Name of the limiter [orders]: ';
const FRAMEWORK =
  'Framework (express, fastify, hono, koa, nest, http), found in package.json (express) [express]: ';
const DATABASE = 'Watch postgres (DATABASE_URL, of the environment)? yes or no [yes]: ';
const RATE = 'Requests per second it surely bears, all instances [100]: ';

test('Enter four times takes what it found: a policy is written, and what comes next is told', async () => {
  begin('init');
  for (const question of [NAME, FRAMEWORK, DATABASE, RATE]) await answer(question, '\r');
  expect(await terminal.ended).toEqual({ code: 0, cooked: true });
  const text = readFileSync(join(folder, 'policies/orders.ts'), 'utf8');
  expect(text).toContain("name: 'orders'");
  expect(text).toContain('rate: 100,');
  expect(text).toContain("postgres.waiting({ url: env('DATABASE_URL') })");
  expect(said()).toContain("import { flyball } from 'flyball/express';");
  expect(said()).toContain('flyball check policies/orders.ts --live');
  expect(said()).not.toContain('secret');
});

test('an answer that is not allowed is told and asked again; other answers are taken', async () => {
  begin('init');
  await answer(NAME, 'My Limiter\r');
  await answer(NAME, 'payments\r', 2);
  await answer(FRAMEWORK, 'rails\r');
  await answer(FRAMEWORK, 'hono\r', 2);
  await answer(DATABASE, 'perhaps\r');
  await answer(DATABASE, 'no\r', 2);
  await answer(RATE, '0\r');
  await answer(RATE, '40\r', 2);
  expect(await terminal.ended).toEqual({ code: 0, cooked: true });
  expect(said()).toContain(`"My Limiter" is not allowed: 1 to 64 of a-z, 0-9, '.', '_', '-'.`);
  expect(said()).toContain('"rails" is not allowed: one of express, fastify');
  expect(said()).toContain('"perhaps" is not allowed: yes or no.');
  expect(said()).toContain('"0" is not allowed: 1 … 100000.');
  expect(readdirSync(join(folder, 'policies'))).toEqual(['payments.ts']);
  const text = readFileSync(join(folder, 'policies/payments.ts'), 'utf8');
  expect(text).toContain('rate: 40,');
  // The line on a database is there to be seen, and no code.
  expect(text).toContain('// dbWait: ');
  expect(text).not.toMatch(/^ *dbWait: /m);
  expect(said()).toContain("import { flyball } from 'flyball/hono';");
});

test('what a flag says is not asked', async () => {
  begin('init orders --framework koa --database none --rate 7');
  expect(await terminal.ended).toMatchObject({ code: 0 });
  expect(said()).not.toMatch(/\[[^\]\n]*\]: /);
  expect(readFileSync(join(folder, 'policies/orders.ts'), 'utf8')).toContain('rate: 7,');
});

test('Ctrl-C at the last question: exit 130, nothing is written, the terminal is as it was', async () => {
  begin('init');
  for (const question of [NAME, FRAMEWORK, DATABASE]) await answer(question, '\r');
  await answer(RATE, '\x03');
  expect(await terminal.ended).toEqual({ code: 130, cooked: true });
  expect(existsSync(join(folder, 'policies'))).toBe(false);
  expect(said()).not.toContain('Next:');
});
