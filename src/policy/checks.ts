/** What no single field can tell: the checks between fields of a policy, each run on what is there. Stage: policy. */
import { checkBreaker } from './checks-breaker.js';
import { checkCanary } from './checks-canary.js';
import { checkConfirm } from './checks-confirm.js';
import { checkNotify } from './checks-notify.js';
import { checkRollout } from './checks-rollout.js';
import { checkObjectives } from './checks-signals.js';
import { checkSources } from './checks-sources.js';
import { checkSubjects } from './checks-subjects.js';
import { checkWindow } from './checks-window.js';
import { checkWindows } from './checks-windows.js';
import { checkDownstream } from './downstream.js';
import type { Draft, FieldFault, Report } from './draft.js';

/** All faults between fields. `raw` is the policy as written: only there a level still shows its unit. */
export function crossChecks(draft: Draft, raw: unknown): FieldFault[] {
  const faults: FieldFault[] = [];
  const report: Report = (field, message) => void faults.push({ field, message });
  checkBounds(draft, report);
  checkLimiter(draft, report);
  checkWindow(draft, report);
  checkDownstream(draft, report);
  checkSubjects(draft, report);
  checkRollout(draft, report);
  checkCanary(draft, report);
  checkObjectives(draft, raw, report);
  checkConfirm(draft, raw, report);
  checkBreaker(draft, raw, report);
  checkWhenLost(draft, report);
  checkWindows(draft, report);
  checkSources(draft, report);
  checkNotify(draft, report);
  return faults;
}

function checkBounds(draft: Draft, report: Report): void {
  const { limiter = {}, bounds = {} } = draft;
  const pairs = [
    ['rate', 'limiter.rate', limiter.rate, 'Raise rate or lower min.', 'Lower rate or raise max.'],
    ['inFlight', 'limiter.inFlightMax', limiter.inFlightMax, 'Raise it or lower min.', ''],
    ['capacity', 'limiter.capacity', limiter.capacity, 'Raise capacity or lower min.', ''],
  ] as const;
  for (const [name, ownName, own, mendMin, mendMax] of pairs) {
    const { min, max } = bounds[name] ?? {};
    if (min !== undefined && max !== undefined && min > max) {
      report(`bounds.${name}.min`, `is ${min} but bounds.${name}.max is ${max}. Swap them.`);
    }
    if (own === undefined) continue;
    if (min !== undefined && min > own) {
      report(`bounds.${name}.min`, `is ${min} but ${ownName} is ${own}. ${mendMin}`);
    }
    if (max !== undefined && max < own) {
      const mend = mendMax || 'Lower it or raise max.';
      report(`bounds.${name}.max`, `is ${max} but ${ownName} is ${own}. ${mend}`);
    }
  }
  if (bounds.inFlight && draft.limiter && !('inFlightMax' in limiter)) {
    report('bounds.inFlight', 'bounds a cap that is not there. Give limiter.inFlightMax.');
  }
  if (draft.mode !== 'auto') return;
  if (!('bounds' in draft) || (draft.bounds && !('rate' in draft.bounds))) {
    report(
      'bounds.rate',
      "is missing: mode 'auto' moves the rate only within bounds. Give bounds: { rate: { min, max } }, or use mode 'recommend'.",
    );
  }
  if (limiter.inFlightMax !== undefined && !('inFlight' in bounds)) {
    report(
      'bounds.inFlight',
      "is missing: mode 'auto' moves limiter.inFlightMax only within bounds. Give bounds: { inFlight: { min, max } }.",
    );
  }
}

function checkLimiter(draft: Draft, report: Report): void {
  const { limiter = {}, bounds = {} } = draft;
  const lowest = bounds.capacity?.min ?? limiter.capacity;
  const lowestName =
    bounds.capacity?.min === undefined ? 'limiter.capacity' : 'bounds.capacity.min';
  const { maxCost } = limiter;
  if (maxCost !== undefined && lowest !== undefined && lowest < maxCost) {
    report(
      lowestName,
      `is ${lowest}, below limiter.maxCost ${maxCost}: a take of that cost could never pass. Raise it to at least ${maxCost}.`,
    );
  }
  const subject = limiter.perSubject?.capacity;
  if (maxCost !== undefined && subject !== undefined && subject < maxCost) {
    report(
      'limiter.perSubject.capacity',
      `is ${subject}, below limiter.maxCost ${maxCost}: a take of that cost could never pass. Raise it to at least ${maxCost}.`,
    );
  }
  const { default: usual, sheddable } = limiter.reserve ?? {};
  if (usual !== undefined && sheddable !== undefined && usual > sheddable) {
    report(
      'limiter.reserve.sheddable',
      `is ${sheddable}, below reserve.default ${usual}: what is shed first must leave more. Raise it to at least ${usual}.`,
    );
  }
  for (const [field, share, own] of [
    ['limiter.reserve.default', usual, undefined],
    ['limiter.reserve.sheddable', sheddable, undefined],
    ['bounds.reserve.default', bounds.reserve?.default, usual],
    ['bounds.reserve.sheddable', bounds.reserve?.sheddable, sheddable],
  ] as const) {
    if (share !== undefined && own !== undefined && share < own) {
      report(field, `is ${share}, below limiter.reserve (${own}), from which it rises. Raise it.`);
    }
    if (
      share === undefined ||
      lowest === undefined ||
      share === 0 ||
      lowest * (1 - share) >= (maxCost ?? 1)
    )
      continue;
    report(
      field,
      `is ${share}: of a capacity of ${lowest} that leaves less than one take of that priority. Lower it.`,
    );
  }
}

function checkWhenLost(draft: Draft, report: Report): void {
  const { whenLost = {}, bounds = {}, limiter = {} } = draft;
  if (whenLost.inFlight !== undefined && draft.limiter && !('inFlightMax' in limiter)) {
    report(
      'whenLost.inFlight',
      'is the safe value of a cap that is not there. Give limiter.inFlightMax.',
    );
  }
  for (const name of ['rate', 'inFlight'] as const) {
    const value = whenLost[name];
    const { min, max } = bounds[name] ?? {};
    if (value === undefined || min === undefined || max === undefined || min > max) continue;
    if (value < min || value > max) {
      report(
        `whenLost.${name}`,
        `is ${value}, outside bounds.${name} (${min} … ${max}). Move it inside.`,
      );
    }
  }
}
