/** The checks of a policy's signals against what refers to them: objectives, step law. Stage: policy. */
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
export function signalNamed(
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

export function checkLevel(
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
    const units = { ratio: "unit: 'ratio'", duration: "unit: 'seconds' or 'milliseconds'" };
    const mend = hasUnit(signal) ? ` Or is it another? Give it ${units[unit]}.` : '';
    report(field, `is ${show(written)}, but signal ${show(name)} is ${KIND_WORDS[kind]}.${mend}`);
  } else if (kind === 'ratio' && value > 1) {
    report(field, `is ${value}, but signal ${show(name)} is ${KIND_WORDS.ratio}.`);
  } else if (value === 0 && kind === 'duration') {
    report(field, 'is 0: no answer takes no time. Give a time above 0.');
  }
}

/** May the policy say what it is measured in? */
function hasUnit({ source, stat }: Signal): boolean {
  const free = source === 'prometheus' || source === 'custom' || source === 'scrape';
  return free && stat !== 'rate' && stat !== 'share';
}
