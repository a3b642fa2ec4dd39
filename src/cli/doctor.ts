/** `flyball doctor`: looks for what is wrong with the set-up and says how to mend it; changes nothing. Stage: cli. */
import { Command, InvalidArgumentError } from 'commander';
import { EXIT, FlyballError } from '../errors.js';
import { describeFault } from '../faults.js';
import { redactUrl } from '../log.js';
import { checkExports } from './doctor-audit.js';
import { checkDaemons } from './doctor-daemons.js';
import type { Finding } from './doctor-finding.js';
import { checkFolder } from './doctor-folder.js';
import { load } from './doctor-load.js';
import { checkPolicies, policyPaths } from './doctor-policies.js';
import { checkRedis } from './doctor-redis.js';
import { checkTopology } from './doctor-topology.js';
import { parseSpan } from './options.js';
import type { CliIo, Colours } from './output.js';
import { cliRedis, type Session, withRedis } from './session.js';
import { clean } from './text.js';

const MOST_LOAD_MS = 60_000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('doctor')
      .description('Find what is wrong with Redis, policies and signals, and how to mend it.')
      .argument('[policies...]', 'files or folders (default: FLYBALL_POLICIES, else ./policies)')
      .option('--load <span>', 'also measure decisions per second for so long, 1s … 1m', parseLoad)
      .addHelpText(
        'before',
        `Examples:
  flyball doctor
  flyball doctor policies/ --json
  flyball doctor --load 5s                  how many decisions a second this Redis gives
`,
      )
      .action(async (given: string[], flags: { load?: number }) => {
        report(io, await examine(io, policyPaths(io, given), flags.load));
      }),
  );
}

function parseLoad(text: string): number {
  const ms = parseSpan(text);
  if (ms <= MOST_LOAD_MS) return ms;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is more than 1m. Write 5s.`);
}

async function examine(io: CliIo, paths: string[], loadMs?: number): Promise<Finding[]> {
  try {
    const { url, source } = cliRedis(io);
    return await withRedis(io, async (session: Session) => [
      node(),
      { check: 'redis', status: 'ok', message: `answers at ${redactUrl(url)} (from ${source})` },
      ...(await contained('topology', async () => [await checkTopology(session.redis)])),
      ...(await contained('redis', () => checkRedis(session.redis, session.prefix))),
      ...(await contained('limiters', () => checkDaemons(session))),
      ...(await contained('audit export', () => checkExports(session))),
      ...checkFolder(io.env),
      ...(await contained('policies', () => checkPolicies(io, session, paths))),
      ...(loadMs === undefined
        ? []
        : await contained('load', async () => [await load(session.redis, session.prefix, loadMs)])),
    ]);
  } catch (error) {
    if (!(error instanceof FlyballError) || !error.code.startsWith('FLYBALL_E_REDIS_')) throw error;
    return [
      node(),
      {
        check: 'redis',
        status: 'fail',
        message: redactUrl(error.message),
        ...mendOf(io),
      },
      ...checkFolder(io.env),
      ...(await checkPolicies(io, null, paths)),
    ];
  }
}

/** `run` starts a private Redis only where no address is given. */
function mendOf(io: CliIo): Pick<Finding, 'mend' | 'command'> {
  if (io.globals.redis === undefined && !io.env.FLYBALL_REDIS_URL) {
    return {
      mend: 'Start the private Redis: it runs with flyball run.',
      command: 'flyball run policies/',
    };
  }
  return {
    mend: 'Start Redis there, or mend the address (--redis, FLYBALL_REDIS_URL). Without one, flyball run brings a private Redis.',
  };
}

/** A check that is itself refused is a finding, and the others still run. */
async function contained(check: string, run: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    const { code, message } = describeFault(error);
    if (/NOPERM/.test(message)) {
      const mend = 'Ask as the daemon user of deploy/redis/users.acl to see it.';
      return [{ check, status: 'skipped', message: `this user may not look: ${message}`, mend }];
    }
    return [{ check, status: 'fail', message: `${code}: ${message}` }];
  }
}

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const message = `Node.js ${process.versions.node}`;
  if (major > 20 || (major === 20 && minor >= 19)) return { check: 'node', status: 'ok', message };
  return { check: 'node', status: 'fail', message, mend: 'Use Node.js ≥ 20.19.' };
}

function report(io: CliIo, findings: readonly Finding[]): void {
  const failed = findings.filter((f) => f.status === 'fail').length;
  const warned = findings.filter((f) => f.status === 'warn').length;
  if (failed > 0) io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({ ok: failed === 0, failed, warned, findings });
    return;
  }
  const wide = Math.max(...findings.map((f) => f.check.length));
  for (const { check, status, message, mend, command } of findings) {
    io.out(`${mark(io.c, status)} ${clean(check).padEnd(wide)}  ${clean(message)}`);
    if (mend) io.out(`${' '.repeat(wide + 8)}${io.c.dim(`→ ${clean(mend)}`)}`);
    if (command) io.out(`${' '.repeat(wide + 10)}${io.c.cyan(clean(command))}`);
  }
  const sum = failed + warned === 0 ? 'All is well.' : `${failed} failed, ${warned} to look at.`;
  io.say(sum);
}

function mark(c: Colours, status: Finding['status']): string {
  if (status === 'ok') return c.green('ok   ');
  if (status === 'warn') return c.yellow('warn ');
  return status === 'fail' ? c.red('fail ') : c.dim('skip ');
}
