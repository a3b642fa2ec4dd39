/** A plan of policies as a person reads it: +, ~ and - for what is new, changed and gone; who owns each number. Pure. Stage: cli. */
import type { FieldChange } from '../policy/plan.js';
import { parseRollout, rolloutWords } from '../redis/rollout.js';
import type { LimiterPlan, PlanView } from '../view/plan.js';
import type { Drift, Owned } from '../view/plan-owners.js';
import type { Colours } from './output.js';
import { clean, clockTime, number } from './text.js';

const MARKS = {
  create: '+',
  change: '~',
  mend: '~',
  unchanged: ' ',
  orphan: ' ',
  refuse: '!',
} as const;

/** All limiters that would change, the others in a line each, and the sum. */
export function planText(c: Colours, view: PlanView): string {
  const blocks = view.limiters.map((plan) => limiterText(c, plan));
  const warnings = view.warnings.map((warning) => `${c.yellow('!')} ${clean(warning)}`);
  return [...blocks, ...warnings, sumText(view)].join('\n');
}

function sumText({ counts }: PlanView): string {
  const { create, change, mend, unchanged, orphan, refuse } = counts;
  const parts = [
    [create, 'to create'],
    [change, 'to change'],
    [mend, 'to put right'],
    [unchanged, 'unchanged'],
    [orphan, 'without a file (kept)'],
    [refuse, 'refused'],
  ] as const;
  const told = parts.filter(([n], i) => n > 0 || i < 2).map(([n, what]) => `${n} ${what}`);
  return `Plan: ${told.join(', ')}.`;
}

function limiterText(c: Colours, plan: LimiterPlan): string {
  const { action, limiter, file, sentence } = plan;
  const mark = { '+': c.green('+'), '~': c.yellow('~'), '!': c.red('!'), ' ': ' ' }[MARKS[action]];
  const title = `${mark} ${c.bold(clean(limiter))}  ${clean(file ?? 'no file')}`;
  if (action === 'refuse') return `${title}  refused: ${clean(sentence ?? '')}.`;
  const from = plan.adopted?.slice(0, 12);
  const to = plan.desired?.slice(0, 12);
  const hashes = action === 'change' ? `${from} → ${to}` : action === 'create' ? `new ${to}` : from;
  const at = plan.revision === null ? '' : `, revision ${plan.revision}`;
  const state = { unchanged: 'unchanged', orphan: 'kept', mend: 'has drifted' };
  const word = action === 'create' || action === 'change' ? '' : `  ${state[action]}`;
  const lines = [`${title}  ${c.dim(`${hashes ?? 'nothing adopted'}${at}`)}${word}`];
  lines.push(...fieldLines(c, plan.fields));
  lines.push(...numberLines(c, plan));
  lines.push(...plan.drift.map((each) => `    ${c.red('drift')} ${driftText(each)}`));
  lines.push(...plan.warnings.map((warning) => `    ${c.yellow('!')} ${clean(warning)}`));
  return lines.join('\n');
}

/** `+ bounds.rate.max  500`, a line each. */
export function fieldLines(c: Colours, fields: readonly FieldChange[]): string[] {
  const lines: string[] = [];
  for (const { field, kind, before, after } of fields) {
    const sign = { add: c.green('+'), change: c.yellow('~'), remove: c.red('-') }[kind];
    const value =
      kind === 'add'
        ? show(after)
        : kind === 'remove'
          ? show(before)
          : `${show(before)} → ${show(after)}`;
    lines.push(`    ${sign} ${clean(field)}  ${value}`);
  }
  return lines;
}

/** Of those that change all, of the others what is not plainly the policy's. */
function numberLines(c: Colours, plan: LimiterPlan): string[] {
  const changes = plan.action === 'change' || plan.action === 'create';
  const names = { rate: 'rate', capacity: 'capacity', inFlightMax: 'in-flight cap' } as const;
  const rows: [string, string | null, string | null, Owned][] = [];
  if (plan.mode !== null) rows.push(['mode', plan.mode.inForce, plan.mode.planned, plan.mode]);
  for (const each of plan.numbers) {
    const said = (n: number | null) => (n === null ? null : numberText(each.name, n));
    rows.push([names[each.name], said(each.inForce), said(each.planned), each]);
  }
  if (plan.rollout !== null) {
    const { inForce, planned } = plan.rollout;
    const said = (text: string) => rolloutWords(parseRollout(text));
    if (inForce !== '' || planned !== '') {
      rows.push(['enforced for', said(inForce), said(planned), plan.rollout]);
    }
  }
  return rows
    .filter(([, , , owned]) => changes || owned.owner !== 'policy')
    .map(([name, from, to, owned]) => {
      const value =
        from === null ? `${to}` : from === to || to === null ? from : `${from} → ${c.bold(to)}`;
      const whose = from === null ? '' : c.dim(`  ${ownerText(owned)}`);
      return `      ${name.padEnd(14)}${value}${whose}`;
    });
}

function numberText(name: 'rate' | 'capacity' | 'inFlightMax', value: number): string {
  if (name === 'rate') return `${number(value)}/s`;
  return name === 'inFlightMax' && value === 0 ? 'none' : number(value);
}

/** `law`, `ada@host (unverified), until 13:02:11`, `window night`. */
function ownerText({ owner, by, untilMs }: Owned): string {
  const until = untilMs === null ? '' : `, until ${clockTime(untilMs)}`;
  if (owner === 'person') return `${clean(by ?? 'a person')}${until}`;
  if (owner === 'window') return `window ${clean(by ?? '')}${until}`;
  return owner;
}

function driftText({ field, inForce, adopted }: Drift): string {
  const said = (value: string | number) => (value === '' ? 'nothing' : show(value));
  return `${field} is ${said(inForce)}, and the adopted policy gives ${said(adopted)}: nobody owns that`;
}

/** Short: a policy's plain data hold no secrets, but they may be long. */
function show(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return clean(text.length > 80 ? `${text.slice(0, 77)}…` : text);
}
