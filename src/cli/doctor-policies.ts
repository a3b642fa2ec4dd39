/** What `doctor` asks of policies: are the files valid, does each signal answer, do the pools fit the database. Stage: cli. */
import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../clock.js';
import { formatFault } from '../errors.js';
import { createLog } from '../log.js';
import type { Policy } from '../policy/schema.js';
import { apart, CLOCK_MEND } from '../sense/skew.js';
import { unitOf, withUnit } from '../view/signal-unit.js';
import type { Finding } from './doctor-finding.js';
import { checkPools } from './doctor-pools.js';
import type { CliIo } from './output.js';
import type { Session } from './session.js';
import { clean } from './text.js';
import { shellWord } from './undo.js';

/** A policy that never returns is a finding, not a hang. */
const LOAD_DEADLINE_MS = 10_000;
const FLUSH_MS = 1500;
/** Reasons that say "nothing happens", not "cannot be read". */
const QUIET = new Set(['no_traffic', 'no_data', 'not_started']);

/** Given paths, else FLYBALL_POLICIES, else ./policies when it is there. */
export function policyPaths(io: CliIo, given: readonly string[]): string[] {
  if (given.length > 0) return [...given];
  const fromEnv = (io.env.FLYBALL_POLICIES ?? '').split(',').map((path) => path.trim());
  if (fromEnv.some((path) => path !== '')) return fromEnv.filter((path) => path !== '');
  return existsSync('policies') ? ['policies'] : [];
}

export async function checkPolicies(
  io: CliIo,
  session: Session | null,
  paths: string[],
): Promise<Finding[]> {
  if (paths.length === 0) {
    return [{ check: 'policies', status: 'skipped', message: 'no policy files are given' }];
  }
  const { loadPolicies } = await import('../policy/load.js');
  const { loaded, faults } = await loadPolicies(paths, { deadlineMs: LOAD_DEADLINE_MS });
  const findings: Finding[] = faults.map((fault) => ({
    check: 'policies',
    status: 'fail',
    message: clean(formatFault(fault)),
    mend: 'flyball check shows all faults of the file.',
    command: `flyball check ${shellWord(fault.file) ?? '<file>'}`,
  }));
  if (loaded.length > 0) {
    const names = loaded.map(({ policy }) => policy.limiter.name).join(', ');
    findings.push({ check: 'policies', status: 'ok', message: `valid: ${names}` });
  }
  for (const { policy, file } of session ? loaded : []) {
    findings.push(...(await checkSignals(io, session!, policy, file)));
  }
  findings.push(
    ...(await checkPools(
      loaded.map(({ policy }) => policy),
      io.env,
    )),
  );
  return findings;
}

/** One reading of every signal, as the daemon takes it. */
async function checkSignals(
  io: CliIo,
  session: Session,
  policy: Policy,
  file: string,
): Promise<Finding[]> {
  const [{ createSampler }, { createSourcePool }] = await Promise.all([
    import('../sense/sampler.js'),
    import('../sense/source-pool.js'),
  ]);
  const { name, group } = policy.limiter;
  const log = createLog({ level: 'silent', fd: 2 });
  const sampler = createSampler({
    redis: session.redis,
    policy,
    address: { name, group, prefix: session.prefix },
    clock: systemClock,
    sources: createSourcePool({
      ...{ env: io.env, log, clock: systemClock, everyMs: 0 },
      policyFile: () => file,
    }),
    // Asked once: each source has all of its deadline.
    patienceMs: Number.POSITIVE_INFINITY,
  });
  try {
    let { signals, telemetry } = await sampler.read();
    if (telemetry.kind === 'missing' && telemetry.reason === 'not_started') {
      // The first reading only marks where counting begins; services flush once a second.
      await setTimeout(FLUSH_MS);
      ({ signals, telemetry } = await sampler.read());
    }
    const findings = Object.entries(signals).map(([signal, reading]): Finding => {
      const check = `signal ${name}.${signal}`;
      if (reading.kind === 'value') {
        const value = withUnit(reading.value, unitOf(policy.signals[signal]!));
        return { check, status: 'ok', message: `answers: ${value}` };
      }
      const quiet = QUIET.has(reading.reason);
      return {
        check,
        status: quiet ? 'warn' : 'fail',
        message: clean(`${reading.reason}${reading.detail ? `: ${reading.detail}` : ''}`),
        mend: quiet
          ? 'It will answer once there is something to see.'
          : 'Check the address and rights of this source, and the variables the policy names.',
        ...(quiet ? {} : { command: `flyball check ${shellWord(file) ?? '<file>'} --live` }),
      };
    });
    if (telemetry.kind === 'missing') {
      findings.push({
        check: `telemetry ${name}`,
        status: 'warn',
        message: `no service reports (${telemetry.reason})`,
        mend: 'Call createLimiter with this name in the service, or wait for traffic.',
      });
    } else {
      findings.push({
        check: `telemetry ${name}`,
        status: 'ok',
        message: `${telemetry.processes} ${telemetry.processes === 1 ? 'process reports' : 'processes report'}, ${telemetry.reporting} of them completions`,
      });
      if (telemetry.clockSkewMs !== undefined) {
        const message = `the clock of a process is off: Redis's is ${apart(telemetry.clockSkewMs, 'its')}`;
        findings.push({ check: `clocks ${name}`, status: 'warn', message, mend: CLOCK_MEND });
      }
    }
    return findings;
  } finally {
    await sampler.close();
  }
}
