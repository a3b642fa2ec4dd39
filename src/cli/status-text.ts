/** The status view as a person reads it: a table for many, lines for one. Pure. Stage: cli. */

import { endCommand } from '../actuate/verbs/ends.js';
import { apart, SKEW_WARN_MS } from '../sense/skew.js';
import { withUnit } from '../view/signal-unit.js';
import type { HoldView, Numbers, StatusView } from '../view/status.js';
import type { CanaryView } from '../view/status-canary.js';
import { rolloutLine } from '../view/status-reach.js';
import type { WorstSignal } from '../view/status-signals.js';
import { toldSentence, wrap } from './entry-text.js';
import type { CliIo, Colours } from './output.js';
import { clean, clockTime, localTime, number, span } from './text.js';

export function statusTable(io: CliIo, views: readonly StatusView[]): string {
  const { c } = io;
  const rows = views.map((view) => [
    c.bold(clean(view.limiter)),
    state(c, view),
    view.mode ?? '',
    view.inForce ? `${number(view.inForce.rate)}/s` : '',
    view.inForce ? cap(view.inForce) : '',
    view.binds,
    view.worst ? `${clean(view.worst.signal)} ${ratio(view.worst)}` : '',
    [...view.holds.map((hold) => held(hold, false)), ...partly(view)].join(', '),
    daemon(c, view),
  ]);
  return io.table(
    ['LIMITER', 'BREAKER', 'MODE', 'RATE', 'CAP', 'BINDS', 'WORST', 'HOLD', 'DAEMON'],
    rows,
  );
}

export function statusLines(c: Colours, view: StatusView, nowMs: number, columns: number): string {
  const lines: string[] = [];
  const row = (name: string, text: string) => {
    const [first = '', ...rest] = wrap(text, Math.max(40, columns - 16));
    lines.push(
      `  ${c.dim(name.padEnd(13))} ${first}`,
      ...rest.map((more) => `${' '.repeat(16)}${more}`),
    );
  };
  if (!view.managed) {
    lines.push(`${c.bold(clean(view.limiter))}  ${c.red('unmanaged')}`);
    row(
      'params',
      'none in Redis: services use the numbers in their own code; flyball run creates them',
    );
    row('traffic', traffic(view));
    return lines.join('\n');
  }
  const { inForce, target, bounds } = view;
  lines.push(
    `${c.bold(clean(view.limiter))}  breaker ${state(c, view)}  mode ${view.mode}  revision ${view.revision}${view.group ? `  group ${clean(view.group)}` : ''}`,
  );
  if (inForce && target && bounds) {
    row('rate', `${number(inForce.rate)}/s${range(bounds.rate)}${back(inForce.rate, target.rate)}`);
    row('capacity', `${number(inForce.capacity)}${range(bounds.capacity)}`);
    row('in-flight cap', `${cap(inForce)}${bounds.inFlight ? range(bounds.inFlight) : ''}`);
  }
  row('binds now', bindsText(view));
  row('traffic', traffic(view));
  if (view.state === 'open' && view.openUntilMs !== null && view.openUntilMs > 0) {
    row(
      'open',
      `until ${clockTime(view.openUntilMs)} (${span(view.openUntilMs - nowMs)} left), then probes`,
    );
  }
  if (view.worst) row('worst signal', worst(view.worst));
  for (const { signal, reason } of view.missing) {
    row('no evidence', `${clean(signal)}: ${clean(reason)}`);
  }
  for (const hold of view.holds)
    row('hold', c.cyan(`${held(hold, true)} by ${clean(hold.by) || '?'}`));
  if (view.profile) {
    const { name, untilMs } = view.profile;
    const left = `until ${clockTime(untilMs)} (${span(untilMs - nowMs)} left)`;
    row('profile', c.cyan(`${clean(name)} ${left}`));
  }
  if (view.rollout) row('enforced for', c.cyan(rolloutLine(view.rollout)));
  if (view.canary) row('canary', c.cyan(canaryLine(view.canary, nowMs)));
  if (view.routes.length > 0) row('routes', view.routes.map(clean).join(', '));
  row('daemon', daemonText(view));
  if (view.law)
    row('law', `${clean(view.law)}, policy ${clean(view.policyHash ?? '').slice(0, 12)}`);
  if (view.loop) row('loop', view.loop.text);
  const off = clocksText(view);
  if (off !== '') row('clocks', c.yellow(off));
  if (view.file === 'drift')
    row('policy', c.yellow("the daemon's file differs from the adopted one"));
  if (view.file === 'pending' && !view.canary)
    row('policy', c.yellow('a changed file waits to be applied'));
  for (const fault of view.faults) row('policy fault', c.red(clean(fault)));
  if (view.rateOnly) row('completions', c.yellow(view.rateOnly));
  if (view.wouldBe) {
    row(
      'would be',
      `${view.wouldBe.state}, rate ${number(view.wouldBe.rate)}/s, cap ${cap(view.wouldBe)} (mode ${view.mode}: recorded, not applied)`,
    );
  }
  const last = view.lastChange;
  if (last) {
    row(
      'last change',
      `r${last.revision}  ${localTime(last.atMs)}  ${clean(last.actor)}  ${clean(last.reason)}: ${toldSentence({ actor: { name: last.actor }, sentence: last.sentence })}`,
    );
  }
  const next = nextSteps(view);
  if (next !== '') row('next', next);
  return lines.join('\n');
}

/** Why it is so and the way back, as commands to paste; empty while nothing is out of the ordinary. */
function nextSteps(view: StatusView): string {
  const { limiter, state, holds, lastChange } = view;
  const parts = [
    ...holds.flatMap(({ kind }) => (kind === 'open' ? [] : [endCommand(kind, limiter)])),
    ...(state === 'open' || state === 'half-open' ? [endCommand('open', limiter)] : []),
  ];
  if (parts.length === 0 && state !== 'recovering') return '';
  const why =
    lastChange === null ? [] : [`flyball explain ${limiter} ${lastChange.revision} (why)`];
  return clean([...why, ...parts.map((command) => `${command} (ends it)`)].join(', '));
}

/** Empty while all are within a second. */
function clocksText({ clocks }: StatusView): string {
  const { redisMs, servicesMs } = { redisMs: 0, servicesMs: 0, ...clocks };
  const parts: string[] = [];
  if (Math.abs(redisMs ?? 0) > SKEW_WARN_MS) parts.push(apart(redisMs!, "the daemon's"));
  if (Math.abs(servicesMs) > SKEW_WARN_MS) parts.push(apart(servicesMs, "a service's"));
  return parts.length === 0 ? '' : `Redis's is ${parts.join(', ')}`;
}

function state(c: Colours, view: StatusView): string {
  if (view.state === null) return c.red('unmanaged');
  if (view.gliding) return c.yellow(`${view.state}, gliding`);
  if (view.state === 'closed') return c.green('closed');
  return view.state === 'open' ? c.red('open') : c.yellow(view.state);
}

function cap({ inFlightMax }: Pick<Numbers, 'inFlightMax'>): string {
  return inFlightMax === null ? 'none' : number(inFlightMax);
}

function range([min, max]: [number, number]): string {
  return min === max ? '' : `  of ${number(min)} … ${number(max)}`;
}

function back(now: number, target: number): string {
  return now === target ? '' : `  (${number(target)}/s is stored)`;
}

function bindsText(view: StatusView): string {
  switch (view.binds) {
    case 'breaker':
      return view.state === 'half-open' ? 'the breaker (half-open, probing)' : 'the breaker';
    case 'cap':
      return 'the in-flight cap';
    case 'rate':
      return 'the rate';
    case 'subject':
      return "subjects' own buckets";
    case 'reserve':
      return 'the reserve for higher priorities';
    case 'nothing':
      return view.mode === 'off' ? 'nothing (mode off admits all)' : 'nothing';
    default:
      return 'unknown: no service has reported in the last 5 s';
  }
}

function traffic({ traffic: t, mode }: StatusView): string {
  if (!t.seen) return 'none reported';
  const denied = reasons(t.deniedPerSecond);
  const said = (verb: string, counts: string[]) =>
    counts.length > 0 ? `; ${verb} by ${counts.join(', ')}` : '';
  const by =
    mode === 'shadow'
      ? said('would be denied', denied)
      : said('denied', denied) + said('in shadow would be denied', reasons(t.wouldDenyPerSecond));
  return `${number(t.offeredPerSecond)}/s offered, ${number(t.admittedPerSecond)}/s admitted${by}`;
}

function reasons(perSecond: Record<string, number>): string[] {
  return Object.entries(perSecond)
    .filter(([, n]) => n > 0)
    .map(([reason, n]) => `${clean(reason)} ${number(n)}/s`);
}

function worst(w: WorstSignal): string {
  const { value, setpoint, unit, fresh } = w;
  const old = fresh ? '' : ' (old)';
  return `${clean(w.signal)} ${withUnit(value, unit)}, ${ratio(w)} its setpoint ${withUnit(setpoint, unit)}${old}`;
}

function ratio(w: WorstSignal): string {
  return `${number(Math.round(w.ratio * 100) / 100)} ×`;
}

/** A table has no room for the time left. */
function held(hold: HoldView, withLeft: boolean): string {
  const left = withLeft ? ` (${span(hold.leftMs ?? 0)} left)` : '';
  const how =
    hold.untilMs === null ? 'until a person ends it' : `until ${clockTime(hold.untilMs)}${left}`;
  return `${hold.kind} ${how}${hold.breakerHeld ? ', breaker too' : ''}`;
}

function partly({ rollout }: StatusView): string[] {
  return rollout && rollout.percent < 100 ? [`rollout ${number(rollout.percent)} %`] : [];
}

function daemon(c: Colours, view: StatusView): string {
  const { alive, owner } = view.daemon;
  // `east:812:9f31c0`: which process it is, `flyball status <limiter>` says.
  if (alive) return owner === null ? 'alive' : clean(owner.split(':')[0]!);
  return view.managed ? c.yellow('none') : '';
}

function daemonText(view: StatusView): string {
  const { alive, owner, lastTickAgeMs, heartbeatLeftMs } = view.daemon;
  const age = lastTickAgeMs === null ? '' : `; last tick ${span(lastTickAgeMs)} ago`;
  if (owner !== null) return `${clean(owner)} holds the lease${age}`;
  if (alive) {
    return `none holds the lease; the last heartbeat counts for ${span(heartbeatLeftMs)} more${age}`;
  }
  const safe = view.safe;
  const goal = safe
    ? `rate ${number(safe.rate)}/s, cap ${safe.inFlightMax === null ? 'none' : number(safe.inFlightMax)}`
    : '';
  if (view.gliding)
    return `none${age}; the limits glide to their safe values (${goal}) or are there`;
  return `none${age}; ${view.holds.some(({ kind }) => kind !== 'bounds') ? 'held values stay while the hold lasts' : `without one the limits go to ${goal}`}`;
}

const ENDED = {
  failed: 'failed, and was taken back',
  unproven: 'proved nothing, and was taken back',
  stopped: 'was ended',
};

function canaryLine(canary: CanaryView, nowMs: number): string {
  const { policy, limiter, percent, judgedMs, untilMs, ended, rests } = canary;
  const version = `policy ${clean(policy).slice(0, 12)}`;
  if (ended !== null) return `${version} ${ENDED[ended]}; it waits for its file to change`;
  const tried = `${version} on ${percent} % of the subjects (${clean(limiter)})`;
  if (nowMs >= untilMs) return `${version} is over unjudged: no service asks it any more`;
  if (rests !== null) return `${tried} rests, its time does not count: ${rests}`;
  return `${tried}, judged after ${clockTime(judgedMs)}`;
}
