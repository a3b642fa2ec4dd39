/** `flyball doctor`: looks for what is wrong with the set-up and says how to mend it; changes nothing. Stage: cli. */
import { Command } from 'commander';
import { EXIT, FlyballError } from '../errors.js';
import { describeFault } from '../faults.js';
import { redactUrl } from '../log.js';
import { checkLimiters, checkPolicies, policyPaths } from './doctor-policies.js';
import { checkRedis, type Finding } from './doctor-redis.js';
import { checkTopology } from './doctor-topology.js';
import type { CliIo, Colours } from './output.js';
import { cliRedis, type Session, withRedis } from './session.js';
import { clean } from './text.js';

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('doctor')
      .description('Find what is wrong with Redis, policies and signals, and how to mend it.')
      .argument('[policies...]', 'files or folders (default: FLYBALL_POLICIES, else ./policies)')
      .addHelpText('before', 'Examples:\n  flyball doctor\n  flyball doctor policies/ --json\n')
      .action(async (given: string[]) => {
        const findings = await examine(io, policyPaths(io, given));
        report(io, findings);
      }),
  );
}

async function examine(io: CliIo, paths: string[]): Promise<Finding[]> {
  try {
    const { url, source } = cliRedis(io);
    return await withRedis(io, async (session: Session) => [
      node(),
      { check: 'redis', status: 'ok', message: `answers at ${redactUrl(url)} (from ${source})` },
      ...(await contained('topology', async () => [await checkTopology(session.redis)])),
      ...(await contained('redis', () => checkRedis(session.redis, session.prefix))),
      ...(await contained('limiters', () => checkLimiters(session))),
      ...(await contained('policies', () => checkPolicies(io, session, paths))),
    ]);
  } catch (error) {
    if (!(error instanceof FlyballError) || !error.code.startsWith('FLYBALL_E_REDIS_')) throw error;
    return [
      node(),
      {
        check: 'redis',
        status: 'fail',
        message: redactUrl(error.message),
        mend: 'Start Redis or mend its address; flyball run brings a private one when no URL is set.',
      },
      ...(await checkPolicies(io, null, paths)),
    ];
  }
}

/** A check that is itself refused is a finding, and the others still run. */
async function contained(check: string, run: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    const { code, message } = describeFault(error);
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
  for (const { check, status, message, mend } of findings) {
    io.out(`${mark(io.c, status)} ${clean(check).padEnd(wide)}  ${clean(message)}`);
    if (mend) io.out(`${' '.repeat(wide + 8)}${io.c.dim(`→ ${mend}`)}`);
  }
  const sum = failed + warned === 0 ? 'All is well.' : `${failed} failed, ${warned} to look at.`;
  io.say(sum);
}

function mark(c: Colours, status: Finding['status']): string {
  if (status === 'ok') return c.green('ok   ');
  if (status === 'warn') return c.yellow('warn ');
  return status === 'fail' ? c.red('fail ') : c.dim('skip ');
}
