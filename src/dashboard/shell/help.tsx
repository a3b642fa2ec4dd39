/** Keys, shapes and words, in one dialog: `?`. Stage: dashboard. */
import { Glyph, type Shown, STATE_DOES } from '../parts/glyph.jsx';
import { Modal } from '../parts/modal.jsx';

const KEYS: readonly [string, string][] = [
  ['/', 'find a limiter'],
  ['j  k', 'next, previous row'],
  ['Enter', 'open it'],
  ['Esc', 'clear the search, close a dialog'],
  ['?', 'this help'],
];
const STATES: readonly [Shown, string][] = [
  ['closed', 'as a switch is closed: requests pass, within the limits shown'],
  ['open', 'as a switch is open: every request is denied until the open time has passed'],
  ['half-open', 'a few probes pass; their outcome decides'],
  ['recovering', 'limits rise step by step to what held before'],
  ['gliding', 'no daemon: limits move to their safe values'],
  ['unmanaged', 'nothing in Redis: services use the numbers in their code'],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Modal title="Help" onClose={onClose}>
      <h3>Keys</h3>
      <dl class="facts">
        {KEYS.map(([key, what]) => (
          <div key={key} class="pair">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>States</h3>
      <dl class="facts">
        {STATES.map(([state, what]) => (
          <div key={state} class="pair">
            <dt class={`state ${state}`}>
              <Glyph shape={state} />
              {state}
              <span class="does">· {STATE_DOES[state]}</span>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>Undo</h3>
      <p>
        Open the limiter, find the change under <em>What happened</em>, choose{' '}
        <em>Roll back to before this</em>. You see now and then before anything is written; the
        values hold for as long as you say, and <em>Release</em> gives them back to the autopilot.
      </p>
    </Modal>
  );
}
