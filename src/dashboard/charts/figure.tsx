/** A chart with its title, a key with the numbers under the cursor, and the table that stands behind it. Stage: dashboard. */
import { useState } from 'preact/hooks';
import { localTime } from '../data/times.js';
import { Outside, outside } from '../parts/outside.jsx';
import { Plot, type PlotProps } from './plot.jsx';
import { tableRows } from './series.js';

const TABLE_ROWS = 60;

export interface FigureProps extends Omit<PlotProps, 'onCursor'> {
  title: string;
  /** What it shows now, in a sentence: for those who do not see the picture. */
  summary: string;
}

export function Figure({ title, summary, ...plot }: FigureProps) {
  const [at, setAt] = useState<number | null>(null);
  const [open, setOpen] = useState(false);
  const { lines, timeMs, say } = plot;
  const index = at ?? timeMs.length - 1;
  return (
    <figure class="chart" data-chart={title}>
      <figcaption>
        <h3>
          <Outside text={title} />
        </h3>
        <span class="keys">
          {lines.map((line) => (
            <span
              key={line.name}
              class={`key ${line.dashed ? 'dashed' : ''}`}
              style={{ '--key': `var(${line.colour})` }}
            >
              <Outside text={line.name} /> <b class="num">{shown(line.values[index], say)}</b>
            </span>
          ))}
        </span>
        <span class="unseen">{outside(summary)}</span>
      </figcaption>
      <Plot {...plot} onCursor={setAt} />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="small soft">
          As a table<span class="unseen">: {outside(title)}</span>
        </summary>
        {open && <DataTable {...plot} title={title} />}
      </details>
    </figure>
  );
}

function DataTable({ title, timeMs, lines, say }: Omit<FigureProps, 'summary'>) {
  const newest = timeMs.at(-1) ?? 0;
  return (
    <section
      class="scrolled chart-table"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
      tabIndex={0}
      aria-label={`${outside(title)}, as a table`}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map((line) => (
              <th key={line.name} scope="col" class="num">
                <Outside text={line.name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tableRows(timeMs.length, TABLE_ROWS).map((i) => (
            <tr key={timeMs[i]}>
              <th scope="row">{localTime(timeMs[i]!, newest)}</th>
              {lines.map((line) => (
                <td key={line.name} class="num">
                  {shown(line.values[i], say)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function shown(value: number | null | undefined, say: (value: number) => string): string {
  return value == null ? '–' : say(value);
}
