/** `flyball backtest`: what a policy would have decided on a service's own past, minute by minute. Stage: cli. */
import { Command, InvalidArgumentError } from 'commander';
import { EXIT, FlyballError, PolicyError } from '../errors.js';
import { type LoadedPolicy, loadPolicies } from '../policy/load.js';
import type { Policy } from '../policy/schema.js';
import { readHistory } from '../redis/history-rows.js';
import { limiterKeys } from '../redis/keys.js';
import { type Replayable, type Replayed, replay, replayable, summarize } from '../sim/replay.js';
import { closedLoop } from '../sim/replay-closed.js';
import { type Recorded, recordedOf } from '../sim/replay-recorded.js';
import { checkColumn } from './backtest-columns.js';
import { readCsv } from './backtest-csv.js';
import { readPrometheus } from './backtest-prometheus.js';
import { type Backtest, backtestJson, backtestText } from './backtest-view.js';
import { parseCount, parseSince } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { findLimiter, withRedis } from './session.js';

interface BacktestFlags {
  since?: { agoMs: number } | { atMs: number };
  limiter?: string;
  prometheus?: string;
  query: Record<string, string>;
  header: Record<string, string>;
  csv?: string;
  closedLoop?: true;
  all?: true;
  deadline: number;
}

const WEEK_MS = 7 * 86_400_000;
const SAY_EVERY_MS = 5000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('backtest')
      .description("What a policy would have decided on your service's own past, by the minute.")
      .argument('<policy>', 'a policy file')
      .option('--since <time>', 'how far back, 7d, or an ISO time (default: 7d)', parseSince)
      .option('--limiter <name>', "whose past (default: the policy's own limiter)")
      .option('--prometheus <url>', 'from Prometheus instead of the roll-ups in Redis', parseUrl)
      .option(
        '--query <name=promql>',
        'a column or signal from Prometheus; repeatable',
        addQuery,
        {},
      )
      .option(
        '--header <name=value>',
        'sent to Prometheus; a value env:NAME is read from the environment; repeatable',
        addHeader,
        {},
      )
      .option('--csv <file>', 'from a file instead')
      .option('--closed-loop', 'also play the worst hour on a plant fitted to this past')
      .option('--all', 'print every minute, not only those with a decision')
      .option('--deadline <ms>', 'time the file may take to load', parseCount, 10_000)
      .addHelpText(
        'before',
        'Examples:\n  flyball backtest policies/checkout.ts --since 7d\n' +
          '  flyball backtest policies/new.ts --limiter checkout --closed-loop\n' +
          '  flyball backtest policies/checkout.ts --prometheus http://127.0.0.1:9090 \\\n' +
          '    --query okPerSecond=\'sum(rate(http_requests_total{code!~"5.."}[1m]))\'\n',
      )
      .addHelpText(
        'after',
        '\nExit codes: 0 it ran, 1 no history, or none that a plant can be fitted to, 78 a fault in the policy.',
      )
      .action((path: string, flags: BacktestFlags) => backtest(io, path, flags)),
  );
}

async function backtest(io: CliIo, path: string, flags: BacktestFlags): Promise<void> {
  if (flags.csv !== undefined && flags.prometheus !== undefined) {
    throw new UsageError('--csv and --prometheus are two pasts.', 'Give one of them.');
  }
  if (flags.prometheus === undefined && Object.keys(flags.query).length > 0) {
    throw new UsageError('--query asks Prometheus.', 'Give its address: --prometheus <url>.');
  }
  if (flags.prometheus === undefined && Object.keys(flags.header).length > 0) {
    throw new UsageError('--header is for Prometheus.', 'Give its address: --prometheus <url>.');
  }
  const { file, policy } = await onePolicy(path, flags.deadline);
  const { recorded, source } = await pastOf(io, policy, flags);
  if (recorded.length === 0) {
    throw new FlyballError(
      'FLYBALL_E_BACKTEST_EMPTY',
      `${source} has no minute with traffic${flags.csv === undefined ? ' since then' : ''}. ` +
        'Roll-ups are written while a daemon leads the limiter, a minute after each minute, and kept 8 days.',
    );
  }
  const able = replayable(policy, recorded);
  const replayed = await played(io, able, recorded);
  const result: Backtest = { file, policy, source, able, replayed, summary: summarize(replayed) };
  if (flags.closedLoop) {
    io.say('Fitting a plant, and playing the worst hour on it …');
    await new Promise(setImmediate);
    result.closed = closedLoop(able.policy, replayed);
    if (result.closed.kind === 'refused') io.exitCode = EXIT.fault;
  }
  if (io.flags.json) io.json(backtestJson(result));
  else backtestText(io, result, flags.all === true);
}

async function onePolicy(path: string, deadlineMs: number): Promise<LoadedPolicy> {
  const { loaded, faults } = await loadPolicies(path, { deadlineMs });
  if (faults.length > 0) throw new PolicyError(faults);
  const [only] = loaded;
  if (only !== undefined && loaded.length === 1) return only;
  const files = loaded.map(({ file }) => file).join(', ');
  throw new UsageError(
    `${JSON.stringify(path)} holds ${loaded.length} policies: name one${files ? ` of ${files}` : ''}.`,
  );
}

async function pastOf(
  io: CliIo,
  policy: Policy,
  flags: BacktestFlags,
): Promise<{ recorded: Recorded[]; source: string }> {
  const nowMs = Date.now();
  const since = flags.since ?? { agoMs: WEEK_MS };
  const fromMs = 'atMs' in since ? since.atMs : nowMs - since.agoMs;
  const limiter = flags.limiter ?? policy.limiter.name;
  if (flags.csv !== undefined) {
    const all = readCsv(flags.csv, policy);
    const recorded = flags.since === undefined ? all : all.filter(({ atMs }) => atMs >= fromMs);
    return { recorded, source: flags.csv };
  }
  if (flags.prometheus !== undefined) {
    for (const name of Object.keys(flags.query)) checkColumn(policy, name);
    const headers = headersOf(flags.header, io.env);
    const range = { url: flags.prometheus, limiter, fromMs, toMs: nowMs, queries: flags.query };
    io.say('Asking Prometheus …');
    return { recorded: await readPrometheus(policy, { ...range, headers }), source: 'Prometheus' };
  }
  return withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const rows = await readHistory(session.redis, limiterKeys(address), fromMs);
    return { recorded: rows.map(recordedOf), source: `the history of ${limiter} in Redis` };
  });
}

/** A week is some 600,000 turns of the law: a person is told how far it is, and Ctrl-C is heard. */
async function played(
  io: CliIo,
  { policy }: Replayable,
  recorded: readonly Recorded[],
): Promise<Replayed[]> {
  const replayed: Replayed[] = [];
  let saidMs = performance.now();
  for (const minute of replay(policy, recorded)) {
    replayed.push(minute);
    if (performance.now() - saidMs < SAY_EVERY_MS) continue;
    saidMs = performance.now();
    io.say(`${Math.floor((100 * replayed.length) / recorded.length)} % …`);
    await new Promise(setImmediate);
  }
  return replayed;
}

function parseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('It is no address. Write http://127.0.0.1:9090.');
}

function addHeader(text: string, headers: Record<string, string>): Record<string, string> {
  const [, name, value] = /^([\w-]+)=([\x20-\x7e]+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError("It is no header. Write name=value: 'Authorization=env:NAME'.");
  }
  return { ...headers, [name]: value };
}

/** `env:NAME` keeps a secret out of the list of processes. */
function headersOf(given: Record<string, string>, env: NodeJS.ProcessEnv): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(given)) {
    const [, variable] = /^env:(\w+)$/.exec(text) ?? [];
    const value = variable === undefined ? text : env[variable];
    if (!value) {
      throw new UsageError(`--header ${name}: the environment has no ${variable}.`, 'Set it.');
    }
    headers[name] = value.trim();
  }
  return headers;
}

function addQuery(text: string, queries: Record<string, string>): Record<string, string> {
  const at = text.indexOf('=');
  const name = text.slice(0, at).trim();
  const query = text.slice(at + 1).trim();
  if (at < 1 || query === '') {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is no query. Write name=promql: okPerSecond='sum(rate(…[1m]))'.`,
    );
  }
  return { ...queries, [name]: query };
}
