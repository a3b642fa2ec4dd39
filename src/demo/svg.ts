/** The result as a picture: good answers and response time of both plays over time, from the run's own seconds. Stage: demo. */
import { merge, quantile } from './histogram.js';
import type { PlayRecord, PlaySecond } from './play.js';
import type { DemoResult } from './result.js';
import { PHASE_TITLES, type Phase } from './story.js';

const WIDTH = 880;
const LEFT = 64;
const RIGHT = 20;
const PANEL = 150;
const TOP = 84;
const GAP = 46;
const PLOT = WIDTH - LEFT - RIGHT;
const HEIGHT = TOP + 2 * PANEL + GAP + 70;

const GREY = '#6b7280';
const WITHOUT = '#c2410c';
const WITH = '#0f766e';
const BANDS = ['#f8fafc', '#e2e8f0'];

/** A light ground of its own, so that it reads on dark pages too; the text alternative says the result. */
export function demoSvg(result: DemoResult, without: PlayRecord, guarded: PlayRecord): string {
  const { phases } = guarded;
  const last = phases.at(-1)!;
  const length = last.from + last.seconds;
  const x = (second: number) => LEFT + (second / length) * PLOT;
  const kneeMax = Math.max(...Object.values(result.knee));
  const goodMax = Math.ceil((kneeMax * 1.3) / 20) * 20;
  const goodY = scale(TOP, goodMax);
  const lateTop = TOP + PANEL + GAP;
  const lateY = scale(lateTop, 2200);
  const within = (play: PlayRecord) => play.seconds.filter((s) => s.second < length);
  const line = (
    play: PlayRecord,
    y: (v: number) => number,
    pick: (s: PlaySecond) => number | null,
  ) =>
    within(play)
      .map((s) => [x(s.second + 0.5), pick(s)] as const)
      .filter((point): point is readonly [number, number] => point[1] !== null)
      .map(([px, v]) => `${px.toFixed(1)},${y(v).toFixed(1)}`)
      .join(' ');
  const good = (s: PlaySecond) => s.good;
  const late = (s: PlaySecond) => quantile(merge([s.latency]), 0.95);
  const times = (result.with.good / Math.max(1, result.without.good)).toFixed(1);
  const told = `Good answers: ${result.without.good} without Flyball, ${result.with.good} with it (${times} times).`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${told}" font-family="system-ui, sans-serif" font-size="12">
<title>${told}</title>
<rect width="${WIDTH}" height="${HEIGHT}" rx="8" fill="#ffffff"/>
${text(LEFT, 26, 'One checkout service, one seed, two plays', '#111827', 'font-size="16" font-weight="600"')}
${text(LEFT, 46, told, GREY)}
${phases.map((phase, i) => band(phase, i, x)).join('\n')}
${axis(goodY, [0, goodMax / 2, goodMax], 'good answers/s', TOP)}
${kneeSteps(result, phases, x, goodY)}
${stroke(line(without, goodY, good), WITHOUT)}
${stroke(line(guarded, goodY, good), WITH)}
${axis(lateY, [0, 500, 1000, 2000], 'p95 of admitted, ms', lateTop)}
${stroke(line(without, lateY, late), WITHOUT)}
${stroke(line(guarded, lateY, late), WITH)}
${legend(HEIGHT - 18)}
</svg>
`;
}

function scale(top: number, max: number) {
  return (value: number) => top + PANEL * (1 - Math.min(value, max) / max);
}

function band(phase: Phase, index: number, x: (second: number) => number): string {
  const from = x(phase.from);
  const width = x(phase.from + phase.seconds) - from;
  const label = PHASE_TITLES[phase.name];
  return (
    `<rect x="${from.toFixed(1)}" y="${TOP}" width="${width.toFixed(1)}" height="${2 * PANEL + GAP}" fill="${BANDS[index % 2]}"/>` +
    text(from + 4, TOP - 6 - (index % 2) * 13, label, GREY, 'font-size="11"')
  );
}

function axis(y: (v: number) => number, ticks: number[], title: string, top: number): string {
  const lines = ticks.map(
    (tick) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(tick)}" y2="${y(tick)}" stroke="#cbd5e1" stroke-width="0.6"/>` +
      text(LEFT - 6, y(tick) + 4, String(tick), GREY, 'text-anchor="end"'),
  );
  return (
    lines.join('') +
    `<text transform="translate(16 ${top + PANEL / 2}) rotate(-90)" text-anchor="middle" fill="${GREY}">${title}</text>`
  );
}

function kneeSteps(
  { knee }: DemoResult,
  phases: readonly Phase[],
  x: (second: number) => number,
  y: (v: number) => number,
): string {
  const points = phases.flatMap((p) => [
    `${x(p.from).toFixed(1)},${y(knee[p.name]).toFixed(1)}`,
    `${x(p.from + p.seconds).toFixed(1)},${y(knee[p.name]).toFixed(1)}`,
  ]);
  return `<polyline points="${points.join(' ')}" fill="none" stroke="${GREY}" stroke-width="1" stroke-dasharray="4 4"/>`;
}

function stroke(points: string, colour: string): string {
  return `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2" stroke-linejoin="round"/>`;
}

function legend(y: number): string {
  const item = (x: number, colour: string, label: string, dash = '') =>
    `<line x1="${x}" x2="${x + 22}" y1="${y - 4}" y2="${y - 4}" stroke="${colour}" stroke-width="2" ${dash}/>${text(x + 28, y, label, '#111827')}`;
  return (
    item(LEFT, WITHOUT, 'without Flyball') +
    item(LEFT + 150, WITH, 'with Flyball') +
    item(LEFT + 280, GREY, 'knee: best of any fixed in-flight cap', 'stroke-dasharray="4 4"')
  );
}

function text(x: number, y: number, content: string, fill: string, more = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${fill}" ${more}>${content}</text>`;
}
