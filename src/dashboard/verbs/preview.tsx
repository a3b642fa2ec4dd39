/** Now → then of a dry run, with what to know before saying yes. Stage: dashboard. */
import type { EntryValues } from '../../actuate/entry.js';
import type { VerbAnswer } from '../../api/types.js';
import { number } from '../../view/text.js';
import { stateWords } from '../parts/glyph.jsx';
import { Notes } from '../parts/notes.jsx';
import { NowThen } from '../parts/now-then.jsx';
import { Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';

const ROWS: readonly [string, (values: EntryValues) => string][] = [
  ['Mode', (values) => values.mode],
  ['Breaker', (values) => stateWords(values.state)],
  ['Rate', rateOf],
  ['Capacity', (values) => number(values.capacity)],
  ['Cap', (values) => (values.inFlightMax ? number(values.inFlightMax) : 'none')],
];

/** The rate in the log is the one that comes back; an open breaker lets none of it through. */
function rateOf({ rate, state }: EntryValues): string {
  if (state === 'open') return `0/s; ${number(rate)}/s once closed`;
  if (state === 'half-open') return `probes; ${number(rate)}/s once closed`;
  return `${number(rate)}/s`;
}

interface ValuesTableProps {
  before: EntryValues | null;
  after: EntryValues;
  heads?: readonly [string, string];
}

export function ValuesTable({ before, after, heads = ['now', 'then'] }: ValuesTableProps) {
  const rows = ROWS.map(
    ([name, say]) => [name, before === null ? '' : say(before), say(after)] as const,
  );
  return <NowThen rows={rows} heads={[before === null ? '' : heads[0], heads[1]]} />;
}

type Bounds = NonNullable<VerbAnswer['bounds']>;

function BoundsTable({ before, after }: Bounds) {
  const range = (of: { min: number; max: number }, unit = '') =>
    `${number(of.min)} … ${number(of.max)}${unit}`;
  const cap = ({ inFlight }: Bounds['before']) => (inFlight === null ? 'none' : range(inFlight));
  const rows = [
    ['Bounds of the rate', range(before.rate, '/s'), range(after.rate, '/s')],
    ['Bounds of the cap', cap(before), cap(after)],
  ] as const;
  return <NowThen rows={rows} />;
}

/** `ends`: what of a person's it takes the place of. */
export function Preview({ answer, ends }: { answer: VerbAnswer; ends: string | null }) {
  const { before, after, notes, sentence, hold } = answer;
  return (
    <>
      {after !== null && answer.status !== 'nothing' && (
        <ValuesTable before={before} after={after} />
      )}
      {answer.bounds !== null && <BoundsTable {...answer.bounds} />}
      {hold !== null && (
        <p class="sentence">
          Held{' '}
          {hold.untilMs === null ? (
            'until a person ends it'
          ) : (
            <>
              until <Time ms={hold.untilMs} />
            </>
          )}
          .
        </p>
      )}
      {ends !== null && (
        <p class="sentence">
          <strong>
            <Outside text={ends} />
          </strong>
        </p>
      )}
      <p class="sentence">
        <Outside text={sentence} />
      </p>
      {answer.evidence !== null && (
        <p class="sentence">
          Evidence: <Outside text={answer.evidence.text} />
        </p>
      )}
      <Notes notes={notes} />
    </>
  );
}
