/**
 * Draws the pictures of docs/control.md from the product's own simulator: `npm run plots`. The same code gives the same
 * files, so a difference in them is a difference in what the laws decide. With `-- --figures` it prints the table of
 * docs/guides/choose-a-law.md instead.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { benchmarkPicture } from './benchmark-picture.mjs';
import { lawFigures } from './law-figures.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'docs/images');
const from = (path) => import(join(ROOT, 'dist', path));
const { loadPolicies } = await from('policy/load.js');
const { parsePolicy } = await from('policy/parse.js');
const { compare, contest, defaultPlant } = await from('sim/compare.js');
const { constant } = await from('sim/controllers.js');
const { pictureSvg } = await from('sim/picture.js');
const { secondsAxis } = await from('sim/plot.js');
const { openSpans, plotsOf, quantiles } = await from('sim/plots.js');
const { runScenario } = await from('sim/run.js');
const { SCENARIOS } = await from('sim/scenarios.js');

const [policy] = await load(join(ROOT, 'policies/checkout.ts'));
const plant = defaultPlant(policy);
const SEED = 1;
const SETPOINT_MS = 350;

/** Half of the speed at once, for two minutes, under a load that the service carries otherwise. */
const HALF = {
  name: 'database-at-half-speed',
  says: 'The database runs at half speed for two minutes.',
  durationS: 200,
  phases: [0, 40, 160],
  disturbances: [40, 160],
  at: (s) => ({ load: 0.85, databaseSpeed: s >= 40 && s < 160 ? 0.5 : 1 }),
};
/** An upstream that is away for half a minute. */
const OUTAGE = {
  name: 'outage',
  says: 'Every call upstream fails for half a minute.',
  durationS: 120,
  phases: [0, 40, 70],
  disturbances: [70],
  outages: [[40, 70]],
  at: (s) => ({ load: 0.7, failRatio: s >= 40 && s < 70 ? 1 : 0 }),
};
const named = (name) => SCENARIOS.find((scenario) => scenario.name === name);

if (process.argv.includes('--figures')) {
  const tools = { load, parsed, withoutCompletions, contest, defaultPlant, named, seed: SEED };
  process.stdout.write(await lawFigures(ROOT, tools));
} else {
  mkdirSync(FOLDER, { recursive: true });
  knee();
  scenario('surge', named('surge'), ['Load', 'Good answers', 'Response time', 'In flight']);
  scenario('database-at-half-speed', HALF, ['Good answers', 'Response time', 'In flight']);
  outage();
  rateOrCap();
  save('benchmark', benchmarkPicture(ROOT));
}

async function load(path) {
  const { loaded, faults } = await loadPolicies(path, { deadlineMs: 60_000 });
  if (faults.length > 0) throw new Error(JSON.stringify(faults));
  return loaded.map((each) => each.policy);
}

function write(name, picture) {
  save(name, pictureSvg(picture));
}

function save(name, svg) {
  writeFileSync(join(FOLDER, `control-${name}.svg`), svg);
  process.stdout.write(`docs/images/control-${name}.svg\n`);
}

/** What each cap gives under four times the load, once with the database as usual and once at half speed. */
function knee() {
  const MOST = 40;
  const curve = (databaseSpeed) =>
    Array.from({ length: MOST + 1 }, (_, cap) => {
      if (cap === 0) return { good: 0, ms: null };
      const scenario = {
        ...{ name: 'knee', says: '', durationS: 60, phases: [0], disturbances: [] },
        at: () => ({ load: 4, databaseSpeed }),
      };
      const { service, capacityPerSecond } = plant;
      const options = { policy, scenario, service, capacityPerSecond, seed: SEED };
      const limits = constant({ rate: 1e6, capacity: 1e6, inFlightMax: cap });
      const seconds = runScenario(options, limits).slice(10);
      const good = seconds.reduce((sum, second) => sum + second.good, 0) / seconds.length;
      const times = quantiles({ seconds }, 0.95).filter((ms) => ms !== null);
      return { good, ms: times.reduce((sum, ms) => sum + ms, 0) / times.length };
    });
  const usual = curve(1);
  const half = curve(0.5);
  const lines = (of) => [
    { title: 'as usual', style: 'own', values: usual.map(of) },
    { title: 'database at half speed', style: 'best', values: half.map(of) },
  ];
  const best = (list) => list.reduce((at, { good }, n) => (good > list[at].good ? n : at), 0);
  const marks = [best(usual), best(half)].map((n) => n + 0.5);
  write('knee', {
    says: 'Good answers and response time by the number of requests under way: a knee, and past it collapse',
    axis: {
      to: MOST + 1,
      ticks: [0, 5, 10, 15, 20, 25, 30, 35, 40].map((n) => [n + 0.5, String(n)]),
    },
    plots: [
      {
        ...{ title: 'Good answers', unit: 'a second, by requests in flight', marks },
        lines: lines(({ good }) => good),
      },
      {
        ...{ title: 'Response time', unit: 'ms, p95, by requests in flight', marks },
        lines: lines(({ ms }) => ms),
        ...{ objective: SETPOINT_MS, most: 4 * SETPOINT_MS },
      },
    ],
  });
}

/** A scenario under the policy, beside no limit, its own numbers left alone and the best constant limits. */
function scenario(name, of, titles) {
  const comparison = compare(policy, plant, of, SEED);
  const plots = plotsOf(policy, plant, comparison)
    .filter(({ title }) => titles.some((start) => title.startsWith(start)))
    .map((plot) => (plot.title === 'Good answers' ? withStatic(plot, comparison) : plot));
  write(name, { says: `${name}: ${of.says}`, plots, axis: secondsAxis(of.durationS) });
}

function withStatic(plot, { results }) {
  const [none, ...others] = plot.lines;
  const values = results.static.seconds.map(({ good }) => good);
  return { ...plot, lines: [none, { title: 'static', style: 'static', values }, ...others] };
}

/** The breaker: what is offered, what is let through, and how it comes back. */
function outage() {
  const of = OUTAGE;
  const comparison = compare(policy, plant, of, SEED);
  const { policy: own } = comparison.results;
  const common = { shaded: openSpans(own), marks: of.phases.slice(1) };
  const values = (get) => own.seconds.map(get);
  write('outage', {
    says: `outage: ${of.says} The breaker opens, probes, and lets the load in again by degrees`,
    axis: secondsAxis(of.durationS),
    plots: [
      {
        ...common,
        ...{ title: 'Load', unit: 'requests a second, breaker open or half-open shaded' },
        lines: [
          { title: 'offered', style: 'offered', values: values(({ offered }) => offered) },
          { title: 'admitted', style: 'admitted', values: values(({ admitted }) => admitted) },
        ],
      },
      {
        ...{ ...common, title: 'Failed answers', unit: 'a second' },
        lines: [
          {
            ...{ title: 'no limit', style: 'none' },
            values: comparison.results.none.seconds.map(({ failed }) => failed),
          },
          { title: 'this policy', style: 'own', values: values(({ failed }) => failed) },
        ],
      },
      {
        ...{ ...common, title: 'In force: rate', unit: 'a second' },
        lines: [{ title: 'rate', style: 'own', values: values(({ rate }) => rate) }],
      },
    ],
  });
}

/** The same law and load, with completions seen and without. */
function rateOrCap() {
  const runs = contest(policy, plant, HALF, SEED);
  const of = {
    static: runs.run('static'),
    rate: runs.run('policy', withoutCompletions(policy)),
    cap: runs.run('policy'),
  };
  const lines = (get) => [
    { title: 'static', style: 'static', values: get(of.static) },
    { title: 'rate only', style: 'admitted', values: get(of.rate) },
    { title: 'rate and cap', style: 'own', values: get(of.cap) },
  ];
  const marks = HALF.phases.slice(1);
  write('rate-or-cap', {
    says: 'The database at half speed: the rate alone must find the new level, the cap is there at once',
    axis: secondsAxis(HALF.durationS),
    plots: [
      {
        ...{ title: 'Good answers', unit: 'a second', marks },
        lines: lines(({ seconds }) => seconds.map(({ good }) => good)),
      },
      {
        ...{ title: 'Response time', unit: 'ms, p95', marks },
        lines: lines((result) => quantiles(result, 0.95)),
        ...{ objective: SETPOINT_MS, most: 4 * SETPOINT_MS },
      },
    ],
  });
}

function withoutCompletions(of) {
  return parsed({
    ...of,
    limiter: { ...of.limiter, completions: 'none', inFlightMax: undefined },
    bounds: { rate: of.bounds.rate },
    whenLost: { after: of.whenLost.after, over: of.whenLost.over },
  });
}

function parsed(input) {
  const result = parsePolicy(input, 'plots');
  if (result.faults) throw new Error(JSON.stringify(result.faults));
  return result.policy;
}
