/** The charts of a limiter, live: demand against the rate, the cap against what is under way, each signal against its setpoint. Stage: dashboard. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { SeriesAnswer, SeriesChange, SeriesSignal, SeriesWindow } from '../../api/types.js';
import { withUnit } from '../../view/signal-unit.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { onPoints, useStore } from '../data/store.js';
import { AnswerState } from '../parts/answer.jsx';
import { Figure } from './figure.jsx';
import type { Line } from './plot.jsx';
import {
  gapsOf,
  gapsText,
  shownFrom,
  statesOf,
  withChanges,
  withGaps,
  withPoint,
} from './series.js';
import { Timeline } from './timeline.jsx';

const WINDOWS: readonly [SeriesWindow, string][] = [
  ['15m', '15 min, live'],
  ['1h', '1 h'],
  ['24h', '24 h'],
];
/** Minutes are written a minute late. */
const AGAIN_MS = { '15m': undefined, '1h': 30_000, '24h': 60_000 };

export function Charts({ limiter }: { limiter: string }) {
  const [window, setWindow] = useState<SeriesWindow>('15m');
  const { rejoins } = useStore();
  const turn = window === '15m' ? `${window} ${rejoins}` : window;
  const asked = useAnswer(limiter, () => api.series(limiter, window), {
    turn,
    everyMs: AGAIN_MS[window],
  });
  const series = useLive(limiter, asked.value);
  return (
    <section class="sheet charts" aria-label="Charts">
      <div class="head">
        <h2 class="grow">What it did</h2>
        <fieldset class="choice">
          <legend class="unseen">Time shown</legend>
          {WINDOWS.map(([name, title]) => (
            <label key={name} class={name === window ? 'is-on' : ''}>
              <input
                type="radio"
                name="window"
                checked={name === window}
                onChange={() => setWindow(name)}
              />
              {title}
            </label>
          ))}
        </fieldset>
      </div>
      <AnswerState asked={asked} reading="Reading what it did…" />
      {series !== null && <Drawn series={series} />}
    </section>
  );
}

/** The answer, with what came live since. */
function useLive(limiter: string, asked: SeriesAnswer | null): SeriesAnswer | null {
  const [live, setLive] = useState<SeriesAnswer | null>(null);
  const { entries } = useStore();
  useEffect(() => {
    if (asked !== null) setLive(asked);
  }, [asked]);
  useEffect(
    () =>
      onPoints((points) => {
        for (const point of points) {
          if (point.limiter !== limiter) continue;
          setLive((old) =>
            old?.window === '15m' && old.limiter === limiter ? withPoint(old, point) : old,
          );
        }
      }),
    [limiter],
  );
  return useMemo(() => {
    if (live === null || live.limiter !== limiter) return null;
    const news = entries
      .filter(
        (entry) =>
          entry.limiter === limiter && entry.kind === 'change' && entry.atMs >= live.fromMs,
      )
      .map(({ id, atMs, epoch, revision, reason, actor, sentence }): SeriesChange => {
        return { id, atMs, epoch, revision, reason, actor, sentence };
      });
    return withChanges(live, news);
  }, [live, entries, limiter]);
}

function Drawn({ series: recorded }: { series: SeriesAnswer }) {
  const fromMs = shownFrom(recorded);
  const gaps = gapsOf(recorded.timeMs, fromMs);
  const series = withGaps(recorded, gaps);
  const { timeMs, bounds } = series;
  const states = statesOf(series);
  const toMs = Math.max(series.atMs, timeMs.at(-1) ?? 0);
  const marksMs = series.changes.map(({ atMs }) => atMs);
  const shared = { timeMs, fromMs, toMs, states, gaps, marksMs };
  const missing = gapsText(gaps, toMs);
  const perSecond = (value: number) => `${number(value >= 100 ? Math.round(value) : value)}/s`;
  const demand: Line[] = [
    { name: 'offered', colour: '--line-offered', values: series.offered, thin: true },
    { name: 'admitted', colour: '--line-admitted', values: series.admitted },
    { name: 'denied', colour: '--line-denied', values: series.denied, thin: true },
    { name: 'rate', colour: '--line-rate', values: series.rate, stepped: true },
  ];
  const underWay: Line[] = [
    { name: 'in flight', colour: '--line-admitted', values: series.inFlight },
    {
      name: 'cap',
      colour: '--line-cap',
      values: series.inFlightMax.map((cap) => cap || null),
      stepped: true,
    },
  ];
  const last = <T,>(list: readonly T[]) => list.at(-1) ?? null;
  const say = (value: number | null, unit: (value: number) => string) =>
    value === null ? 'not known' : unit(value);
  return (
    <div class="stack">
      <div>
        <Timeline series={{ ...series, fromMs }} toMs={toMs} states={states} />
        {missing !== null && <p class="missing small soft">{missing}</p>}
      </div>
      <Figure
        {...shared}
        title="Demand and rate"
        lines={demand}
        band={bounds?.rate ?? null}
        say={perSecond}
        summary={`Now ${say(last(series.offered), perSecond)} offered, ${say(last(series.admitted), perSecond)} admitted, rate ${say(last(series.rate), perSecond)}`}
      />
      <Figure
        {...shared}
        title="In flight and cap"
        lines={underWay}
        band={bounds?.inFlight ?? null}
        say={whole}
        summary={`Now ${say(last(series.inFlight), whole)} in flight, cap ${say(last(series.inFlightMax) || null, whole)}`}
      />
      {series.signals.map((signal) => (
        <Figure key={signal.signal} {...shared} {...signalFigure(signal)} />
      ))}
    </div>
  );
}

function whole(value: number): string {
  return number(value >= 10 ? Math.round(value) : value);
}

function signalFigure({ signal, unit, values, setpoint, side, tripsAbove }: SeriesSignal) {
  const level = (value: number) => values.map(() => value);
  const say = (value: number) => withUnit(value, unit);
  const lines: Line[] = [{ name: 'reading', colour: '--line-admitted', values }];
  if (setpoint !== null) {
    const name = `${side ?? 'at'} setpoint`;
    lines.push({ name, colour: '--line-rate', values: level(setpoint), dashed: true, thin: true });
  }
  if (tripsAbove !== null) {
    lines.push({
      name: 'trips above',
      colour: '--line-setpoint',
      values: level(tripsAbove),
      dashed: true,
      thin: true,
    });
  }
  const newest = values.at(-1) ?? null;
  const summary =
    newest === null
      ? 'No reading now'
      : `Now ${say(newest)}${setpoint === null ? '' : `, setpoint ${say(setpoint)}`}`;
  return { title: `Signal ${signal}`, lines, say, summary, height: 130 };
}
