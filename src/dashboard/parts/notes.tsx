/** What to know before saying yes. Stage: dashboard. */
import { Glyph } from './glyph.jsx';
import { Outside } from './outside.jsx';

export function Notes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li key={note}>
          <Glyph shape="look" />
          <Outside text={note} />
        </li>
      ))}
    </ul>
  );
}
