/** One play of the story: starts the load, brings each disturbance when it is due, and records every second. Stage: demo. */
import type { CheckoutDatabase } from './database.js';
import { emptyHistogram, type Histogram, merge } from './histogram.js';
import type { LoadSecond } from './load-generator.js';
import type { GuardKind } from './service-guard.js';
import { LEAD_MS, type Stage } from './stage.js';
import { type Phase, type PhaseName, phaseAt } from './story.js';

/** The limiter as it stood at a moment; null where none is. */
export interface LimiterView {
  state: string;
  rate: number;
  inFlightMax: number;
  revision: number;
}

export interface PlaySecond extends LoadSecond {
  phase: PhaseName;
  /** Requests waiting for a pool connection + sessions waiting for a lock, sampled four times a second. */
  waits: number[];
  decisions: Histogram;
  /** The limiter four times a second, with the wall time of each look. */
  looks: (LimiterView & { atMs: number })[];
  /** Part of this second during which the limiter's rate was zero. */
  atRateZero: number;
}

export interface PlayRecord {
  guard: GuardKind;
  /** Wall ms at which the first second began. */
  startedAtMs: number;
  phases: Phase[];
  seconds: PlaySecond[];
}

export interface PlayOptions {
  guard: GuardKind;
  stage: Stage;
  database: CheckoutDatabase;
  phases: Phase[];
  seed: number;
  readLimiter?: () => Promise<LimiterView | null>;
  onSecond(second: PlaySecond, phases: Phase[]): void;
}

const SAMPLE_MS = 250;

interface Samples {
  waits: number[];
  looks: PlaySecond['looks'];
  decisions: Histogram[];
}

const noSamples = (): Samples => ({ waits: [], looks: [], decisions: [] });

export async function playStory(options: PlayOptions): Promise<PlayRecord> {
  const { guard, stage, database, phases, seed } = options;
  await database.setSlowdown(1);
  stage.setUpstreamFailing(false);
  const service = await stage.startService(guard);

  let samples = noSamples();
  let poolWaiting = 0;
  service.onMessage((message) => {
    if (message.type !== 'probe') return;
    poolWaiting = Number(message.poolWaiting);
    samples.decisions.push(message.decisions as Histogram);
  });

  const startedAtMs = Date.now() + LEAD_MS;
  const disturb = scheduleDisturbances(startedAtMs, phases, (phase) => {
    void database.setSlowdown(phase.databaseSlowdown);
    stage.setUpstreamFailing(phase.upstreamFails);
  });
  const sampler = setInterval(() => {
    database.waitingSessions().then(
      (sessions) => void samples.waits.push(poolWaiting + sessions),
      () => {},
    );
    options.readLimiter?.().then(
      (view) => void (view && samples.looks.push({ ...view, atMs: Date.now() })),
      () => {},
    );
  }, SAMPLE_MS);

  const seconds: PlaySecond[] = [];
  const steps = phases.map(({ seconds: length, rate }) => ({ seconds: length, rate }));
  try {
    await stage.load({ steps, seed, startAtMs: startedAtMs, retry: true }, (load) => {
      const taken = samples;
      samples = noSamples();
      const second = {
        ...load,
        phase: phaseAt(phases, load.second).name,
        waits: taken.waits,
        decisions: merge([emptyHistogram(), ...taken.decisions]),
        looks: taken.looks,
        atRateZero: shareAtZero(taken.looks),
      };
      seconds.push(second);
      options.onSecond(second, phases);
    });
  } finally {
    clearInterval(sampler);
    disturb.cancel();
  }
  await service.stop();
  await database.settle();
  return { guard, startedAtMs, phases, seconds };
}

function shareAtZero(views: readonly LimiterView[]): number {
  if (views.length === 0) return 0;
  return views.filter((view) => view.rate === 0).length / views.length;
}

function scheduleDisturbances(
  startedAtMs: number,
  phases: readonly Phase[],
  enter: (phase: Phase) => void,
) {
  const timers = phases.map((phase) =>
    setTimeout(() => enter(phase), Math.max(0, startedAtMs + phase.from * 1000 - Date.now())),
  );
  return { cancel: () => timers.forEach(clearTimeout) };
}
