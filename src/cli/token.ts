/** `flyball token`: who may read and change over HTTP; tokens are made, listed and taken back in a file of hashes. Stage: cli. */
import { chmodSync, existsSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { ROLES } from '../api/roles.js';
import { tokenPlaces, writeNew } from '../api/token-store.js';
import {
  hashToken,
  isRole,
  newToken,
  readTokens,
  TOKEN_NAME,
  type TokenRecord,
  tokenLine,
} from '../api/tokens.js';
import type { Role } from '../api/types.js';
import { openDataDir } from '../redis/data-dir.js';
import { resolveDataDir } from '../redis/locate.js';
import { type CliIo, UsageError } from './output.js';

const HEAD = '# Tokens of the HTTP API: name:role:sha256. `flyball token` keeps this file.\n';

export function register(program: Command, io: CliIo): void {
  const family = new Command('token')
    .description('Tokens of the HTTP API and the dashboard: make, list, take back.')
    .addHelpText(
      'beforeAll',
      `Examples:
  flyball token add ada --role operator     prints the token, once
  flyball token list
  flyball token remove ada                  daemons hear of it within a second
`,
    );
  family
    .command('add')
    .description('Make a token and print it: only its hash is kept.')
    .argument('<name>', 'stands in the audit log as who did it', parseName)
    .addOption(
      new Option('--role <role>', `${ROLES.join(', ')}: each may do what those before it may`)
        .argParser(parseRole)
        .makeOptionMandatory(),
    )
    .action((name: string, { role }: { role: Role }) => {
      const { file } = placesOf(io);
      const records = readTokens(file) ?? [];
      if (records.some((one) => one.name === name)) {
        throw new UsageError(
          `${file} has a token of the name ${name}.`,
          `Take it back first: flyball token remove ${name}.`,
        );
      }
      const token = newToken();
      save(file, [...records, { name, role, sha256: hashToken(token) }]);
      if (io.flags.json) io.json({ file, name, role, token });
      else {
        io.out(token);
        io.say(io.ce.dim(`${name} is ${role}. It is shown this once; ${file} keeps its hash.`));
      }
    });
  family
    .command('list')
    .description('Names and roles; the tokens themselves are kept nowhere.')
    .action(() => {
      const { file, local } = placesOf(io);
      const tokens = (readTokens(file) ?? []).map(({ name, role }) => ({ name, role }));
      const localFile = local !== null && existsSync(local) ? local : null;
      if (io.flags.json) return io.json({ file, tokens, localFile });
      if (tokens.length > 0) {
        io.out(
          io.table(
            ['NAME', 'ROLE'],
            tokens.map(({ name, role }) => [name, role]),
          ),
        );
      } else io.say(`${file} holds no token. flyball token add <name> --role reader makes one.`);
      if (localFile !== null) io.say(io.ce.dim(`The token of this machine lies in ${localFile}.`));
    });
  family
    .command('remove')
    .description('Take a token back: what it began ends with it.')
    .argument('<name>', 'see flyball token list', parseName)
    .action((name: string) => {
      const { file } = placesOf(io);
      const records = readTokens(file) ?? [];
      const left = records.filter((one) => one.name !== name);
      if (left.length === records.length) {
        const names = records.map((one) => one.name).join(', ') || 'none';
        throw new UsageError(`${file} has no token of the name ${name}.`, `It has: ${names}.`);
      }
      save(file, left);
      if (io.flags.json) io.json({ file, removed: name });
      else io.out(`${name} is taken back.`);
    });
  program.addCommand(family);
}

function placesOf(io: CliIo) {
  return tokenPlaces(io.env.FLYBALL_TOKENS_FILE || undefined, resolveDataDir({ env: io.env }));
}

/** Whole or not at all, with the rights that it had: a daemon of another user may read it. */
function save(file: string, records: readonly TokenRecord[]): void {
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600;
  openDataDir(dirname(file));
  const whole = `${file}.${process.pid}`;
  writeNew(whole, HEAD + records.map((record) => `${tokenLine(record)}\n`).join(''));
  chmodSync(whole, mode);
  renameSync(whole, file);
}

function parseName(text: string): string {
  if (TOKEN_NAME.test(text) && text !== 'local') return text;
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no name. Use 1 to 64 letters, digits, '.', '_', '@', '-'; local is the machine's own.`,
  );
}

function parseRole(text: string): Role {
  if (isRole(text)) return text;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is no role: ${ROLES.join(', ')}.`);
}
