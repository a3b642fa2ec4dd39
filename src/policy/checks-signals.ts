/** The checks of a policy's signals against what refers to them: objectives, breaker, step law. Stage: policy. */
import { at, type Draft, type Report } from './draft.js';
import { KIND_WORDS, signalKind } from './kinds.js';
import type { Signal } from './schema.js';
import { ratioOf, show } from './units.js';

export function checkObjectives(draft: Draft, raw: unknown, report: Report): void {
  for (const [name, objective] of Object.entries(draft.objective ?? {})) {
    const field = `objective.${name}`;
    const written = at(raw, 'objective', name);
    const given = ['below', 'above'].filter((side) => at(written, side) !== undefined);
    if (objective && given.length !== 1) {
      report(
        field,
        `gives ${given.length === 0 ? 'neither' : 'both'} of below, above. Give exactly one.`,
      );
    }
    const signal = signalNamed(draft, name, field, report);
    for (const side of ['below', 'above'] as const) {
      if (signal && signalKind(signal) === 'ratio' && side === 'below' && objective?.below === 1) {
        report(
          `${field}.below`,
          `is ${show(at(written, side))}: a share is never above all of it, so it would always hold. Write a share below 1: one percent is '1%'.`,
        );
      } else if (signal)
        checkLevel(signal, name, `${field}.${side}`, at(written, side), objective?.[side], report);
    }
  }
}

/** The signal of that name; reports one that is not there. Undefined too when it is faulty itself. */
function signalNamed(
  draft: Draft,
  name: string,
  field: string,
  report: Report,
): Signal | undefined {
  const signals = draft.signals ?? {};
  if (Object.hasOwn(signals, name)) return signals[name] as Signal | undefined;
  const names = Object.keys(signals);
  report(
    field,
    `names no signal: there is no ${show(name)} in signals. ${names.length > 0 ? `Use one of: ${names.join(', ')}` : 'Add it to signals'}.`,
  );
  return undefined;
}

function checkLevel(
  signal: Signal,
  name: string,
  field: string,
  written: unknown,
  value: number | undefined,
  report: Report,
): void {
  if (value === undefined) return;
  const kind = signalKind(signal);
  const unit =
    typeof written !== 'string' ? undefined : ratioOf(written) !== undefined ? 'ratio' : 'duration';
  if (unit !== undefined && unit !== kind) {
    report(field, `is ${show(written)}, but signal ${show(name)} is ${KIND_WORDS[kind]}.`);
  } else if (kind === 'ratio' && value > 1) {
    report(field, `is ${value}, but signal ${show(name)} is ${KIND_WORDS.ratio}.`);
  } else if (value === 0 && kind === 'duration') {
    report(field, 'is 0: no answer takes no time. Give a time above 0.');
  }
}

export function checkBreaker(draft: Draft, raw: unknown, report: Report): void {
  const { breaker } = draft;
  if (!breaker) return;
  const signal =
    breaker.on === undefined ? undefined : signalNamed(draft, breaker.on, 'breaker.on', report);
  if (signal && breaker.on !== undefined) {
    if (signal.stat !== 'errors' && signal.stat !== 'errorRatio') {
      report(
        'breaker.on',
        `names ${show(breaker.on)}, which is not of failures. A breaker counts failures: name one made by upstreamErrors() or telemetry.errorRatio().`,
      );
    } else {
      checkLevel(
        signal,
        breaker.on,
        'breaker.above',
        at(raw, 'breaker', 'above'),
        breaker.above,
        report,
      );
      if (signal.stat === 'errorRatio' && breaker.above === 1) {
        report('breaker.above', 'is 1: no ratio is above it, so it would never trip. Lower it.');
      }
    }
  }
  const { probeRate, openFor, openForMax, successes, probeDeadline } = breaker;
  const rate = draft.limiter?.rate;
  if (probeRate !== undefined && rate !== undefined && probeRate > rate) {
    report(
      'breaker.probeRate',
      `is ${probeRate} but limiter.rate is ${rate}. Lower it to at most ${rate}.`,
    );
  }
  if (openFor !== undefined && openForMax !== undefined && openFor > openForMax) {
    report(
      'breaker.openFor',
      `is ${openFor} ms but breaker.openForMax is ${openForMax} ms. Lower openFor or raise openForMax.`,
    );
  }
  if (probeRate === undefined || probeDeadline === undefined || successes === undefined) return;
  // Tokens that half-open pays out before its deadline; a probe of the largest cost takes that many.
  const probes = Math.floor((probeRate * probeDeadline) / 1000 / (draft.limiter?.maxCost ?? 1));
  if (probes < successes) {
    report(
      'breaker.successes',
      `is ${successes}, but at probeRate ${probeRate} only ${probes} probes fit in probeDeadline (${probeDeadline} ms), so half-open could never close. Lower successes, or raise probeRate or probeDeadline.`,
    );
  }
}

export function checkSources(draft: Draft, report: Report): void {
  for (const [name, signal] of Object.entries(draft.signals ?? {})) {
    if (signal?.source !== 'postgres' || typeof signal.url !== 'string') continue;
    const field = `signals.${name}.url`;
    if (!/^postgres(ql)?:\/\//.test(signal.url)) {
      report(
        field,
        "is not a PostgreSQL address (postgres://host/database), nor env('DATABASE_URL').",
      );
    } else if (/\/\/[^/@]*:[^/@]*@/.test(signal.url) || /[?&]password=/.test(signal.url)) {
      // A policy is stored and shown. The address is not repeated here for the same reason.
      report(field, "holds a password, and a policy is no place for one. Use env('DATABASE_URL').");
    }
  }
  const { control } = draft;
  if (control?.law === 'step' && control.dbWaitsAbove !== undefined) {
    const stats = Object.values(draft.signals ?? {}).map((signal) => signal?.stat);
    if (!stats.some((stat) => stat === undefined || stat === 'waiting' || stat === 'poolWaiting')) {
      report(
        'control.dbWaitsAbove',
        'watches database waits, but no signal gives them. Add postgres.waiting() or telemetry.poolWaiting() to signals.',
      );
    }
  }
}
