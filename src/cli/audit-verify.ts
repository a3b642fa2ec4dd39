/** `flyball audit verify`: proof that nobody edited the log or took anything out of it, in Redis or in an export. Stage: cli. */
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { verifyAudit } from '../actuate/audit.js';
import type { Heads, VerifyReport } from '../actuate/chain-report.js';
import { NO_HEADS, readHeads } from '../audit/heads.js';
import { createVerifier, type Verifier } from '../audit/signature.js';
import { type ExportReport, verifyFolder } from '../audit/verify-folder.js';
import { verifyPostgres } from '../audit/verify-postgres.js';
import { EXIT, FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { DEFAULT_PREFIX, type LimiterAddress, NAME_PATTERN } from '../redis/keys.js';
import { resolvePrefix } from '../redis/locate.js';
import { type CliIo, UsageError } from './output.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';
import { clean } from './text.js';

interface VerifyFlags {
  anchor?: string;
  heads?: string;
  key?: string[];
  export?: string | true;
  postgres?: string | true;
}

interface Given {
  limiter: string | undefined;
  anchors: Heads;
  verifier: Verifier | null;
}

export function verifyCommand(io: CliIo): Command {
  return new Command('verify')
    .description(
      'Check every hash, link and revision; exit 1 when something was edited or is missing.',
    )
    .argument('[limiter]', 'default: all')
    .option('--anchor <hash>', 'a head noted elsewhere, which the chain must hold (one limiter)')
    .option('--heads <path>', 'heads kept elsewhere: a heads.jsonl, or a folder with one')
    .option(
      '--key <files...>',
      'public keys (PEM): what they signed proves, what is signed wrongly is a fault',
    )
    .option('--export [folder]', 'an exported folder, without Redis (default: FLYBALL_AUDIT_FILE)')
    .option(
      '--postgres [url]',
      'an exported table, without Redis (default: FLYBALL_AUDIT_POSTGRES)',
    )
    .addHelpText(
      'before',
      `Examples:
  flyball audit verify                                  what Redis holds
  flyball audit verify checkout --anchor 5e1f…          with a head noted elsewhere
  flyball audit verify --heads /backup/heads.jsonl --key audit.pub
  flyball audit verify --export /var/lib/flyball/audit --key audit.pub
`,
    )
    .action((limiter: string | undefined, flags: VerifyFlags) => verify(io, limiter, flags));
}

async function verify(io: CliIo, limiter: string | undefined, flags: VerifyFlags): Promise<void> {
  if (flags.anchor !== undefined && !/^[0-9a-f]{64}$/.test(flags.anchor)) {
    const shown = JSON.stringify(flags.anchor);
    throw new UsageError(
      `--anchor: ${shown} is no hash of an entry.`,
      'Give its 64 hex digits, as verify prints them.',
    );
  }
  if (flags.anchor !== undefined && limiter === undefined) {
    throw new UsageError(
      '--anchor is of one limiter.',
      'Name it: flyball audit verify checkout --anchor …',
    );
  }
  if (flags.export !== undefined && flags.postgres !== undefined) {
    throw new UsageError('--export and --postgres: one at a time.', 'Run it once for each.');
  }
  const verifier = await keysOf(flags.key);
  const heads: Heads =
    flags.heads === undefined ? NO_HEADS : await readHeads(flags.heads, verifier);
  const own = flags.anchor === undefined ? [] : [{ hash: flags.anchor, name: 'the anchor' }];
  const withOwn = { ...heads, of: (name: string) => [...own, ...heads.of(name)] };
  const given = { limiter, verifier, anchors: withOwn };
  if (flags.export !== undefined) {
    const folder = setting(io, '--export', flags.export, 'FLYBALL_AUDIT_FILE');
    showExport(io, given, await verifyFolder(folder, given));
    return;
  }
  if (flags.postgres !== undefined) {
    const url = setting(io, '--postgres', flags.postgres, 'FLYBALL_AUDIT_POSTGRES');
    const prefix = resolvePrefix(io.globals.prefix, io.env) ?? DEFAULT_PREFIX;
    showExport(io, given, await verifyPostgres(url, prefix, redactUrl(url), given));
    return;
  }
  await withRedis(io, async (session) => {
    const addresses =
      limiter === undefined ? await allOf(session, heads) : [await findLimiter(session, limiter)];
    const reports: VerifyReport[] = [];
    for (const address of addresses) {
      const anchors = given.anchors.of(address.name);
      reports.push(await verifyAudit(session.redis, address, { anchors }));
    }
    const ok = reports.every(({ verdict }) => verdict !== 'broken');
    if (!ok) io.exitCode = EXIT.fault;
    if (io.flags.json) return io.json({ ok, limiters: reports });
    for (const report of reports) showReport(io, report);
    if (reports.length === 0) io.say('No limiter is known here: there is nothing to verify.');
  });
}

/** Also those of which a head is known and nothing is left. */
async function allOf(session: Session, { limiters }: Heads): Promise<LimiterAddress[]> {
  const known = await listLimiters(session);
  const gone = limiters.filter(
    (limiter) => NAME_PATTERN.test(limiter) && !known.some(({ name }) => name === limiter),
  );
  return [...known, ...gone.map((name) => ({ name, prefix: session.prefix }))];
}

function showExport(io: CliIo, { limiter, verifier }: Given, report: ExportReport): void {
  const { fault, torn, limiters, from, first, files } = report;
  const ok = fault === undefined && limiters.every(({ verdict }) => verdict !== 'broken');
  if (!ok) io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({ ok, ...report });
    return;
  }
  const others = first > 1 ? `, older ones than number ${first} are not here` : '';
  if (files > 0) io.say(io.ce.dim(`${clean(from)}: ${files} file(s)${others}.`));
  for (const each of limiters) showReport(io, each, each.where);
  if (torn !== undefined) {
    io.out(
      `${io.c.yellow('torn')}  ${torn.where} is half a line (${torn.bytes} bytes): its writer was killed there. The next exporter cuts it off and writes it again.`,
    );
  }
  if (fault !== undefined) {
    io.out(
      `${io.c.red('broken')}  ${clean(fault.where)}: ${clean(fault.what)}. What follows was not read.`,
    );
  }
  if (limiters.length === 0 && fault === undefined) {
    io.say(
      limiter === undefined ? 'It holds no entries.' : `It holds no entries of ${clean(limiter)}.`,
    );
  }
  if (verifier === null) {
    io.say(
      io.ce.dim(
        'With --key, the public key of the exporter, signed heads prove what is before them.',
      ),
    );
  }
}

function showReport(io: CliIo, report: VerifyReport, where?: string): void {
  const mark = report.verdict === 'broken' ? io.c.red('broken') : io.c.green('ok');
  io.out(`${mark}  ${clean(report.sentence)}${where === undefined ? '' : ` (${clean(where)})`}`);
  for (const gap of report.gaps.slice(1)) io.say(`    and ${clean(gap.sentence)}`);
  io.say(io.ce.dim(`    head ${report.head}`));
}

/** The flag's value, else the daemon's setting. */
export function setting(io: CliIo, flag: string, value: string | true, name: string): string {
  const found = value === true ? io.env[name] : value;
  if (found !== undefined && found !== '') return found;
  throw new UsageError(`${flag} has no value, and ${name} is not set.`, `Give one of them.`);
}

async function keysOf(files: string[] | undefined): Promise<Verifier | null> {
  if (files === undefined) return null;
  const keys = [];
  for (const from of files) {
    const pem = await readFile(from, 'utf8').catch((error: Error) => {
      throw new FlyballError(
        'FLYBALL_E_AUDIT_KEY',
        `${from} cannot be read: ${error.message}. Give the public key in PEM form.`,
      );
    });
    keys.push({ pem, from });
  }
  return createVerifier(keys);
}
