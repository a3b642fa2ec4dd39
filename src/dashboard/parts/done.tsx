/** What was done just now, in words; read out where nobody looks. Stage: dashboard. */
import { Outside } from './outside.jsx';

export function Done({ text }: { text: string | null }) {
  return (
    <p role="status" class={text === null ? 'unseen' : 'done'}>
      {text !== null && <Outside text={text} />}
    </p>
  );
}
