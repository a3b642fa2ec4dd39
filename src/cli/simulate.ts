/** `flyball simulate`: a policy on a simulated service, in named scenarios, beside what it is compared with. Stage: cli. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { PolicyError } from '../errors.js';
import { type LoadedPolicy, loadPolicies } from '../policy/load.js';
import { parsePolicy } from '../policy/parse.js';
import { controlSchema, type Policy } from '../policy/schema.js';
import { type Comparison, compare, defaultPlant, type Plant } from '../sim/compare.js';
import { cellsOf, HEAD, meanGoodput, type Row, rowOf } from '../sim/rows.js';
import type { Scenario } from '../sim/scenario.js';
import { SCENARIOS, type ScenarioName } from '../sim/scenarios.js';
import { parseCount, parseWhole } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { fittedPlant, plantLine, writePage, writePictures } from './simulate-files.js';
import { clean, closest } from './text.js';

interface SimulateFlags {
  scenario: Scenario[];
  seed: number;
  seeds: number;
  html?: string;
  svg?: string;
  law?: string;
  fit?: string;
  list?: true;
  deadline: number;
}

const LAWS = controlSchema.options.map(({ shape }) => shape.law.value);

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('simulate')
      .description('Run a policy on a simulated service: what it would keep, and what it costs.')
      .argument('[policy]', 'a policy file')
      .addOption(
        new Option('--scenario <names>', 'names with commas, or all')
          .argParser(parseScenarios)
          .default([...SCENARIOS], 'all'),
      )
      .option('--seed <n>', 'the random start', parseWhole, 1)
      .option('--seeds <k>', 'so many seeds, from --seed on', parseSeeds, 1)
      .addOption(new Option('--law <law>', "instead of the policy's").choices(LAWS))
      .option('--fit <file>', 'fit the service to its history: JSON or CSV of minutes or seconds')
      .option('--html <file>', 'write a page with plots')
      .option('--svg <folder>', 'write a picture of each scenario')
      .option('--list', 'list the scenarios')
      .option('--deadline <ms>', 'time the file may take to load', parseCount, 10_000)
      .addHelpText(
        'before',
        'Examples:\n  flyball simulate policies/checkout.ts\n' +
          '  flyball simulate policies/checkout.ts --scenario surge,day --seeds 3 --html out.html\n' +
          '  flyball simulate --list\n',
      )
      .addHelpText(
        'after',
        '\nExit codes: 0 it ran, 1 a history cannot be fitted, 78 a fault in the policy.',
      )
      .action(async (path: string | undefined, flags: SimulateFlags) => {
        if (flags.list) list(io);
        else await simulate(io, path, flags);
      }),
  );
}

async function simulate(io: CliIo, path: string | undefined, flags: SimulateFlags): Promise<void> {
  const { file, policy } = await onePolicy(path, flags);
  const plant = flags.fit === undefined ? defaultPlant(policy) : fittedPlant(flags.fit);
  const seeds = Array.from({ length: flags.seeds }, (_, i) => flags.seed + i);
  sayIfLong(io, plant, flags);
  const results: Comparison[][] = [];
  for (const scenario of flags.scenario) {
    io.say(`${scenario.name} … (${results.length + 1} of ${flags.scenario.length})`);
    const runs: Comparison[] = [];
    for (const seed of seeds) {
      // A turn for the terminal: what was said must be seen before the next run takes the thread.
      await new Promise(setImmediate);
      runs.push(compare(policy, plant, scenario, seed));
    }
    results.push(runs);
  }
  const rows = results.map(rowOf);
  if (flags.html !== undefined) {
    writePage(flags.html, { policy, file, plant, results });
    io.say(`Wrote ${clean(flags.html)}.`);
  }
  if (flags.svg !== undefined) {
    const files = writePictures(flags.svg, { policy, plant, results });
    io.say(`Wrote ${files.map(clean).join(', ')}.`);
  }
  if (io.flags.json) io.json(asJson(file, policy, plant, rows));
  else asText(io, policy, plant, rows);
}

/** Requests that are simulated in a second, searches of the best and all contenders taken together. */
const PER_SECOND = 40_000;
const LONG_S = 60;

function sayIfLong(io: CliIo, { capacityPerSecond }: Plant, flags: SimulateFlags): void {
  const simulatedS =
    flags.scenario.reduce((sum, { durationS }) => sum + durationS, 0) * flags.seeds;
  const takesS = (simulatedS * capacityPerSecond) / PER_SECOND;
  if (takesS < LONG_S) return;
  const minutes = Math.ceil(takesS / 60);
  io.say(`This takes about ${minutes} min; fewer --scenario or --seeds are quicker.`);
}

/** The one policy of the file, under the law that was asked for. */
async function onePolicy(path: string | undefined, flags: SimulateFlags): Promise<LoadedPolicy> {
  if (path === undefined) {
    throw new UsageError('Name a policy file.', 'flyball simulate policies/checkout.ts');
  }
  const { loaded, faults } = await loadPolicies(path, { deadlineMs: flags.deadline });
  if (faults.length > 0) throw new PolicyError(faults);
  const [only] = loaded;
  if (only === undefined || loaded.length > 1) {
    const files = loaded.map(({ file }) => file).join(', ');
    throw new UsageError(
      `${JSON.stringify(path)} holds ${loaded.length} policies: name one of ${files}.`,
    );
  }
  if (flags.law === undefined) return only;
  const result = parsePolicy({ ...only.policy, control: { law: flags.law } }, only.file);
  if (result.faults) throw new PolicyError(result.faults);
  return { ...only, policy: result.policy };
}

function asText(io: CliIo, policy: Policy, plant: Plant, rows: readonly Row[]): void {
  const { c } = io;
  const { name } = policy.limiter;
  io.out(plant.isDefault ? c.yellow(plantLine(plant)) : plantLine(plant));
  const asIf = policy.mode === 'auto' ? '' : `; its mode is ${policy.mode}, simulated as if auto`;
  const seeds = rows[0]!.seeds;
  const range = seeds.length === 1 ? `seed ${seeds[0]}` : `seeds ${seeds[0]} to ${seeds.at(-1)}`;
  io.out(`policy: ${clean(name)} under ${policy.control.law}${asIf}; ${range}`);
  io.out('');
  const total = ['policy', 'none', 'static', 'step'] as const;
  const means = ['mean', ...total.map((of) => meanGoodput(rows, of).toFixed(3))];
  const body = rows.map(cellsOf);
  if (rows.length > 1) body.push([...means, ...HEAD.slice(means.length).map(() => '')]);
  io.out(io.table(HEAD, body));
  io.say(
    '\npolicy … step rule: good answers ÷ those of the best constant limits, phase by phase.' +
      '\nThe columns from SLO missed on are the policy’s. docs/guides/simulate.md says what each means.',
  );
}

function asJson(file: string, policy: Policy, plant: Plant, rows: readonly Row[]) {
  return {
    policy: policy.limiter.name,
    file,
    law: policy.control.law,
    mode: policy.mode,
    simulatedAs: 'auto',
    plant: { ...plant, note: plantLine(plant) },
    rows,
    mean: { policy: meanGoodput(rows, 'policy'), none: meanGoodput(rows, 'none') },
  };
}

function list(io: CliIo): void {
  if (io.flags.json) {
    io.json({
      scenarios: SCENARIOS.map(({ name, says, durationS }) => ({ name, says, durationS })),
    });
    return;
  }
  const rows = SCENARIOS.map(({ name, durationS, says }) => [name, `${durationS} s`, says]);
  io.out(io.table(['scenario', 'lasts', 'what happens'], rows));
}

function parseScenarios(text: string): Scenario[] {
  if (text === 'all') return [...SCENARIOS];
  const names = SCENARIOS.map(({ name }) => name);
  const wanted = [...new Set(text.split(',').map((name) => name.trim()))];
  return wanted.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === (name as ScenarioName));
    if (found !== undefined) return found;
    const near = closest(name, names);
    const mend = near ? `Did you mean ${near}?` : `Scenarios are ${names.join(', ')}, or all.`;
    throw new InvalidArgumentError(`${JSON.stringify(name)} is no scenario. ${mend}`);
  });
}

function parseSeeds(text: string): number {
  const count = parseCount(text);
  if (count > 100) throw new InvalidArgumentError(`${text} seeds are too many: 1 to 100.`);
  return count;
}
