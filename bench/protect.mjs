/**
 * The bench `protect`: the demo's checkout under 2, 4 and 10 times what it can do, and with its database at half speed,
 * behind Flyball and behind what else one might do. Goodput is compared with the best fixed cap of the same run.
 */
import { createEnding } from '../dist/demo/ending.js';
import { merge, quantile } from '../dist/demo/histogram.js';
import { runRamp } from '../dist/demo/ramp.js';
import { openProtectStage } from './protect-stage.mjs';
import { median, target } from './report.mjs';

/** Load as a multiple of the knee; `half`: the database slows to half after a third of the time. */
const CONDITIONS = {
  '2x': { title: '2 × the knee', times: 2, atLeast: 0.92 },
  '4x': { title: '4 × the knee', times: 4, atLeast: 0.88 },
  '10x': { title: '10 × the knee', times: 10, atLeast: 0.85 },
  half: { title: '2 × the knee, then the database at half speed', times: 2, halved: true },
};
export const PROTECT_PARTS = Object.keys(CONDITIONS);

const RIVALS = ['static', 'step', 'vegas', 'none'];
const TITLES = {
  flyball: 'Flyball',
  static: 'static cap at the knee',
  step: 'step rule',
  vegas: 'Vegas, in process',
  none: 'no limit',
};
const ROUNDS = 3;
/** A fresh process is slow until its code is compiled; below the knee, so that everyone begins from calm. */
const WARM_TIMES = 0.5;
const SEED = 11;
const SLOWDOWN = 2;
/** A generator that is later than this measured the machine. */
const LATE_MS = 200;

const SIZES = {
  quick: { seconds: 3, warmS: 1, caps: [12, 24], counted: 1 },
  usual: { seconds: 30, warmS: 2, caps: [8, 10, 12, 14, 16, 20, 24, 32, 40], counted: 4 },
};

/** `quick`: a smoke test of seconds, whose figures mean little. `full`: every rival as often as Flyball. */
export async function protectBench(parts = PROTECT_PARTS, { quick = false, full = false } = {}) {
  const size = quick ? SIZES.quick : SIZES.usual;
  const plan = planOf(parts, quick ? 1 : ROUNDS, full || quick);
  const ending = createEnding();
  try {
    return await Promise.race([perform(parts, size, plan, ending), ending.interrupted]);
  } finally {
    await ending.close();
  }
}

/** Round by round through all conditions, so that a slow change of the machine meets everyone alike. */
function planOf(parts, rounds, all) {
  const plan = [];
  for (let round = 0; round < rounds; round++) {
    const rivals = RIVALS.filter((_rival, at) => all || at % rounds === round);
    for (const part of parts) {
      for (const who of ['flyball', ...rivals]) plan.push({ part, who, round });
    }
  }
  return plan;
}

async function perform(parts, size, plan, ending) {
  const minutes = (plan.length * (size.seconds + size.warmS + 5)) / 60;
  say(`${plan.length} runs of ${size.seconds} s, about ${Math.ceil(minutes + 2)} minutes in all`);
  const stage = await openProtectStage(ending);
  const knee = await findKnee(stage, size);
  const records = [];
  for (const [at, run] of plan.entries()) {
    const record = await playOnce(stage, size, knee, run);
    records.push({ ...run, ...record });
    const share = `${(100 * (record.goodPerSecond / kneeOf(knee, run.part))).toFixed(0)} %`;
    say(
      `${at + 1}/${plan.length}  ${run.part.padEnd(5)}${TITLES[run.who].padEnd(24)}` +
        `${record.goodPerSecond.toFixed(1)} good/s, ${share} of the knee`,
    );
  }
  return resultOf(parts, size, knee, records);
}

/** The cap that gives most under three times the load, found before anything else is run. */
async function findKnee(stage, { caps, counted }) {
  const steps = [];
  const ramp = await runRamp(stage, stage.database, { caps, counted }, SEED, (step) => {
    steps.push(step);
    const speed = step.slowdown === 1 ? 'full' : 'half';
    say(`knee: ${speed} speed, cap ${step.cap}: ${step.goodPerSecond.toFixed(1)} good/s`);
  });
  if (!(ramp.fullSpeed > 0 && ramp.halfSpeed > 0)) {
    throw new Error('no cap gave a good answer: this machine is too busy for the bench.');
  }
  const best = steps.find((s) => s.slowdown === 1 && s.goodPerSecond === ramp.fullSpeed);
  return { ...ramp, cap: best.cap };
}

/** Good answers per second of the best cap, over the time that is counted. */
function kneeOf({ fullSpeed, halfSpeed }, part) {
  return CONDITIONS[part].halved ? fullSpeed / 3 + (2 * halfSpeed) / 3 : fullSpeed;
}

async function playOnce(stage, { seconds, warmS }, knee, { part, who, round }) {
  const { times, halved = false } = CONDITIONS[part];
  const daemon = who === 'flyball' || who === 'step' ? await stage.startDaemon(who) : null;
  const guards = { flyball: 'flyball', step: 'flyball', static: 'cap', vegas: 'vegas' };
  const service = await stage.startService(guards[who] ?? 'none');
  if (who === 'static') service.send({ type: 'cap', cap: knee.cap });
  const slowAtS = warmS + Math.round(seconds / 3);
  const records = await stage.load(
    {
      steps: [
        { seconds: warmS, rate: WARM_TIMES * knee.fullSpeed },
        { seconds, rate: times * knee.fullSpeed },
      ],
      seed: SEED + round,
      retry: false,
    },
    ({ second }) => {
      if (halved && second === slowAtS - 1) void stage.database.setSlowdown(SLOWDOWN);
    },
  );
  await service.stop();
  await daemon?.stop();
  await stage.database.settle();
  return summary(records.filter(({ second }) => second >= warmS && second < warmS + seconds));
}

function summary(records) {
  const perSecond = (pick) => records.reduce((sum, each) => sum + pick(each), 0) / records.length;
  return {
    goodPerSecond: perSecond((s) => s.good),
    refusedPerSecond: perSecond((s) => s.refused),
    lostPerSecond: perSecond((s) => s.ok - s.good + s.failed + s.timedOut + s.broken),
    p95Ms: quantile(merge(records.map((s) => s.latency)), 0.95),
    lagMs: Math.max(...records.map((s) => s.lagMs)),
  };
}

function resultOf(parts, { seconds }, knee, records) {
  const results = parts.flatMap((part) =>
    ['flyball', ...RIVALS].map((who) => {
      const own = records.filter((record) => record.part === part && record.who === who);
      const of = (name) => median(own.map((record) => record[name] ?? Number.NaN));
      const shares = own.map((record) => record.goodPerSecond / kneeOf(knee, part));
      return {
        part,
        who,
        runs: own.length,
        share: median(shares),
        least: Math.min(...shares),
        most: Math.max(...shares),
        goodPerSecond: of('goodPerSecond'),
        refusedPerSecond: of('refusedPerSecond'),
        lostPerSecond: of('lostPerSecond'),
        p95Ms: of('p95Ms'),
      };
    }),
  );
  const lagMs = Math.max(...records.map((record) => record.lagMs));
  return {
    tables: parts.map((part) => tableOf(part, results, seconds)),
    targets: results.flatMap(({ part, who, share }) => {
      const { title, atLeast } = CONDITIONS[part];
      if (who !== 'flyball' || atLeast === undefined) return [];
      return [target(`goodput at ${title} ÷ the knee`, share, '>=', atLeast)];
    }),
    results: { knee, runs: results, generatorLagMs: lagMs },
    notes: [
      `The knee: ${knee.fullSpeed.toFixed(1)} good answers/s at a cap of ${knee.cap}, ` +
        `${knee.halfSpeed.toFixed(1)} with the database at half speed. Good: ok within 1 s.`,
      ...(lagMs > LATE_MS
        ? [`The load was up to ${Math.round(lagMs)} ms late: other work disturbed the bench.`]
        : []),
    ],
  };
}

function tableOf(part, results, seconds) {
  return {
    title: `${CONDITIONS[part].title}: medians of runs of ${seconds} s`,
    columns: ['', '÷ knee', 'least', 'most', 'good/s', 'refused/s', 'lost/s', 'p95 ms', 'runs'],
    rows: results
      .filter((result) => result.part === part)
      .map((r) => [
        TITLES[r.who],
        r.share,
        r.least,
        r.most,
        r.goodPerSecond,
        r.refusedPerSecond,
        r.lostPerSecond,
        r.p95Ms,
        r.runs,
      ]),
  };
}

/** On stderr: with `--json` stdout holds the result alone. */
function say(line) {
  process.stderr.write(`${line}\n`);
}
