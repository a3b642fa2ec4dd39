/** Before → after of a verb, as a person reads it before saying yes. Pure. Stage: cli. */
import type { Facts, VerbPlan } from '../actuate/verbs/plan.js';
import { ruleText } from '../actuate/verbs/subject.js';
import { effective } from '../redis/effective.js';
import { parseRollout, rolloutWords } from '../redis/rollout.js';
import type { SubjectRule } from '../redis/subject-override.js';
import type { Colours } from './output.js';
import { clean, clockTime, number, span } from './text.js';

const BOUNDS = [
  ['rate bounds', 'minRate', 'maxRate'],
  ['cap bounds', 'minInFlight', 'maxInFlight'],
] as const;

/** Lines of now → then; equal lines are dim, changed ones stand out; then what to know. */
export function preview(c: Colours, plan: VerbPlan, facts: Facts): string {
  const { params, nowMs } = facts;
  const then = { ...params, ...plan.change };
  const now = effective(params, nowMs);
  const after = effective(then, nowMs);
  const rows: [string, string, string][] = [
    ['breaker', now.state, after.state],
    ['rate', perSecond(plan.before.rate), perSecond(plan.after.rate)],
    ['capacity', number(plan.before.capacity), number(plan.after.capacity)],
    ['in-flight cap', cap(plan.before.inFlightMax), cap(plan.after.inFlightMax)],
  ];
  if (now.rate !== plan.before.rate || after.rate !== plan.after.rate) {
    rows.splice(2, 0, ['  in force', perSecond(now.rate), perSecond(after.rate)]);
  }
  if (plan.before.mode !== plan.after.mode) {
    rows.unshift(['mode', plan.before.mode, plan.after.mode]);
  }
  for (const [name, min, max] of BOUNDS) {
    const range = (of: typeof params) => `${number(of[min])} … ${number(of[max])}`;
    if (range(params) !== range(then)) rows.push([name, range(params), range(then)]);
  }
  rows.push(['pinned', hold(params.pinnedUntil, nowMs), hold(then.pinnedUntil, nowMs)]);
  rows.push(['frozen', hold(params.frozenUntil, nowMs), hold(then.frozenUntil, nowMs)]);
  if (params.rollout !== '' || then.rollout !== '') {
    rows.push(['enforced for', reach(params.rollout), reach(then.rollout)]);
  }
  if (now.state === 'open' || after.state === 'open') {
    rows.push(['open', hold(params.openUntil, nowMs), hold(then.openUntil, nowMs)]);
  }
  if (plan.override) rows.splice(0, rows.length, ...subjectRows(plan.override, nowMs));
  const wide = Math.max(...rows.map((row) => row[1].length));
  const lines = rows.map(([name, from, to]) => {
    const label = `  ${name.padEnd(14)}`;
    return from === to
      ? c.dim(`${label}${from}`)
      : `${label}${from.padEnd(wide)}  →  ${c.bold(to)}`;
  });
  const whom = plan.override ? `, ${clean(plan.override.subject.slice(0, 100))}` : '';
  const title = `${c.bold(facts.limiter)}${whom} at revision ${params.revision}, mode ${params.mode}: ${plan.reason}`;
  return [title, ...lines, ...plan.notes.map((note) => `  ${c.yellow('!')} ${clean(note)}`)].join(
    '\n',
  );
}

function reach(rollout: string): string {
  return rolloutWords(parseRollout(rollout));
}

function subjectRows(
  { before, to }: NonNullable<VerbPlan['override']>,
  nowMs: number,
): [string, string, string][] {
  const said = (rule: SubjectRule | null) => (rule === null ? 'nothing' : ruleText(rule));
  const ends = (rule: SubjectRule | null) => (rule === null ? 'no' : hold(rule.untilMs, nowMs));
  return [
    ['said of it', said(before), said(to)],
    ['holds', ends(before), ends(to)],
  ];
}

function perSecond(value: number): string {
  return `${number(value)}/s`;
}

function cap(value: number): string {
  return value === 0 ? 'none' : number(value);
}

/** `no`, `until a person ends it`, `until 14:02:11 (59 min 3 s)`. */
export function hold(untilMs: number, nowMs: number): string {
  if (untilMs === -1) return 'until a person ends it';
  if (untilMs <= nowMs) return 'no';
  return `until ${clockTime(untilMs)} (${span(untilMs - nowMs)})`;
}
