/** What was done just now, in words; read out where nobody looks. Stage: dashboard. */
import type { ComponentChildren } from 'preact';
import { Outside } from './outside.jsx';

export interface DoneProps {
  /** null: nothing was. */
  text: string | null;
  /** Before it. */
  lead?: ComponentChildren;
}

export function Done({ text, lead }: DoneProps) {
  return (
    <p role="status" class={text === null ? 'unseen' : 'done'}>
      {text !== null && (
        <>
          {lead}
          <Outside text={text} />
        </>
      )}
    </p>
  );
}
