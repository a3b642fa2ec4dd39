/** Runs drawn fault schedules one after the other and prints what came of them: `npm run soak -- --schedules 200`. */
import { FIGURES, type Figures, noFigures } from './fault-figures.js';
import { NotRun } from './play.js';
import { drawSchedule, type Outcome, runSchedule, scheduleText } from './schedules.js';

const [count = '1', firstSeed = '1', atOnce = '1', form = 'table'] = process.argv.slice(2);

/** The one JSON line: what was tried, what came of it, against what it should be. */
interface Summary {
  schema: 1;
  name: 'faults';
  targets: { name: string; value: number; target: string; met: boolean }[];
  seconds: number;
  /** How many times longer than 100 and 500 ms ticks and leases were, since the machine was busy. */
  pace: { runs: number; median: number | null; max: number | null };
  failedSeeds: number[];
  /** Their processes did not start in time: begun anew up to twice, and `never` those that did not start then either. */
  notRun: { begunAnew: number; never: number[] };
  violations: string[];
  checked: Record<string, number>;
  faults: Record<string, number>;
  figures: Record<
    string,
    { about: string; runs: number; median: number | null; max: number | null }
  >;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const startedMs = performance.now();
const outcomes: Outcome[] = [];
const broken: { seed: number; what: string }[] = [];
const notRun: Summary['notRun'] = { begunAnew: 0, never: [] };
let next = Number(firstSeed);
const end = next + Number(count);

async function worker(): Promise<void> {
  while (next < end) {
    const seed = next++;
    const schedule = drawSchedule(seed);
    try {
      const outcome = await runSchedule(schedule, (why) => {
        notRun.begunAnew += 1;
        process.stderr.write(`seed ${seed} was not run: ${why}\n`);
      });
      outcomes.push(outcome);
      tell(schedule.seed, outcome.report.violations);
    } catch (error) {
      if (error instanceof NotRun) {
        notRun.never.push(seed);
        continue;
      }
      broken.push({ seed, what: `seed ${seed} could not be played: ${(error as Error).stack}` });
      tell(seed, [(error as Error).message]);
    }
  }
}

function tell(seed: number, violations: readonly string[]): void {
  const done = outcomes.length + broken.length;
  if (violations.length === 0)
    return void process.stderr.write(`${done}/${count}: seed ${seed} passed\n`);
  process.stderr.write(`${done}/${count}: FAILED\n${scheduleText(drawSchedule(seed))}\n`);
  for (const what of violations) process.stderr.write(`  ✗ ${what}\n`);
}

if (Number(count) === 1) process.stderr.write(`${scheduleText(drawSchedule(next))}\n`);
await Promise.all(Array.from({ length: Number(atOnce) }, worker));
const summary = summarise();
process.stderr.write(`${form === 'json' ? tableOf(summary) : ''}`);
process.stdout.write(form === 'json' ? `${JSON.stringify(summary)}\n` : tableOf(summary));
process.exit(summary.targets.every(({ met }) => met) ? 0 : 1);

function summarise(): Summary {
  const good = outcomes.filter(({ report }) => report.violations.length === 0);
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((all, o) => all + of(o), 0);
  const violations = sum(({ report }) => report.violations.length) + broken.length;
  const checked: Record<string, number> = {};
  const faults: Record<string, number> = {};
  const figures: Figures = noFigures();
  for (const { report, record, figures: own } of outcomes) {
    for (const [name, check] of Object.entries(report.checks)) {
      checked[name] = (checked[name] ?? 0) + check.checked;
    }
    for (const { name } of record.faults) faults[name] = (faults[name] ?? 0) + 1;
    for (const name of Object.keys(figures) as (keyof Figures)[]) figures[name].push(...own[name]);
  }
  return {
    ...{ schema: 1, name: 'faults' },
    targets: [
      target('schedules passed', good.length, Number(count), 'all'),
      target(
        'faults injected',
        sum(({ injected }) => injected),
        1,
        'some',
      ),
      target(
        'decisions checked',
        sum(({ report }) => report.decisions),
        1,
        'some',
      ),
      { name: 'violations', value: violations, target: '0', met: violations === 0 },
    ],
    seconds: Math.round((performance.now() - startedMs) / 1000),
    pace: spread(outcomes.map(({ pace }) => pace)),
    failedSeeds: [
      ...outcomes.filter(({ report }) => report.violations.length > 0).map((o) => o.schedule.seed),
      ...broken.map(({ seed }) => seed),
    ],
    notRun,
    violations: [
      ...outcomes.flatMap(({ schedule, report }) =>
        report.violations.map((what) => `seed ${schedule.seed}: ${what}`),
      ),
      ...broken.map(({ what }) => what),
    ],
    ...{ checked, faults },
    figures: Object.fromEntries(
      Object.entries(figures).map(([name, values]) => [
        name,
        { about: FIGURES[name as keyof Figures], ...spread(values) },
      ]),
    ),
  };
}

/** Markdown, as docs/reliability.md shows it. */
function tableOf({ targets, pace, notRun, failedSeeds, figures }: Summary): string {
  const row = (...cells: (string | number | null)[]) =>
    `| ${cells.map((c) => c ?? '–').join(' | ')} |\n`;
  return [
    '\n',
    row('target', 'value', 'met'),
    row('---', '---', '---'),
    ...targets.map(({ name, value, met }) => row(name, value, met ? 'yes' : '**no**')),
    row(
      'schedules that could not be started',
      notRun.never.length,
      notRun.never.length === 0 ? 'yes' : '**no**',
    ),
    `\nTicks and leases were longer by the factor ${pace.median} (median; at most ${pace.max}).`,
    failedSeeds.length > 0 ? ` Failed seeds: ${failedSeeds.join(', ')}.\n\n` : '\n\n',
    row('figure', 'runs', 'median', 'maximum'),
    row('---', '---', '---', '---'),
    ...Object.values(figures).map(({ about, runs, median, max }) => row(about, runs, median, max)),
  ].join('');
}

function target(name: string, value: number, least: number, words: string) {
  return { name, value, target: `${words}: at least ${least}`, met: value >= least };
}

function spread(values: readonly number[]) {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    runs: sorted.length,
    median: sorted[Math.floor((sorted.length - 1) / 2)] ?? null,
    max: sorted.at(-1) ?? null,
  };
}
