/** The checks of an objective's witnesses: other signals, each with one level in its own unit. Stage: policy. */
import { checkLevel, signalNamed } from './checks-signals.js';
import { at, type Draft, type Report } from './draft.js';
import { countsFailures } from './kinds.js';

const SIDES = ['below', 'above'] as const;

export function checkConfirm(draft: Draft, raw: unknown, report: Report): void {
  for (const [name, objective] of Object.entries(draft.objective ?? {})) {
    if (objective?.confirm) checkWitnesses(draft, raw, name, objective.confirm, report);
  }
}

type Confirm = NonNullable<NonNullable<NonNullable<Draft['objective']>[string]>['confirm']>;

function checkWitnesses(
  draft: Draft,
  raw: unknown,
  name: string,
  confirm: Confirm,
  report: Report,
): void {
  const field = `objective.${name}.confirm`;
  const own = draft.signals?.[name];
  if (own?.stat !== undefined && countsFailures({ stat: own.stat })) {
    report(
      field,
      'has nothing to confirm: no limit is cut for failures, they are for the breaker.',
    );
  }
  if (Object.keys(confirm).length === 0) {
    report(
      field,
      'names no signal. Name one and its level, { dbWait: { above: 2 } }, or leave it out.',
    );
  }
  for (const [witness, level] of Object.entries(confirm)) {
    const own = `${field}.${witness}`;
    if (witness === name) {
      report(own, 'is the signal itself. Name another one that congestion moves too.');
      continue;
    }
    const written = at(raw, 'objective', name, 'confirm', witness);
    const given = SIDES.filter((side) => at(written, side) !== undefined);
    if (given.length !== 1) {
      report(
        own,
        `gives ${given.length === 0 ? 'neither' : 'both'} of below, above. Give exactly one.`,
      );
    }
    const signal = signalNamed(draft, witness, own, report);
    for (const side of SIDES) {
      if (signal)
        checkLevel(signal, witness, `${own}.${side}`, at(written, side), level?.[side], report);
    }
  }
}
