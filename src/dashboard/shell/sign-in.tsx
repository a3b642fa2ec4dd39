/** A token for a session: the cookie it gives cannot be read by any script, the token is kept nowhere. Stage: dashboard. */
import { useState } from 'preact/hooks';
import { signIn, wordsOf } from '../data/session.js';
import { Outside } from '../parts/outside.jsx';

export function SignInForm({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState('');
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (token.trim() === '' || busy) return;
    setBusy(true);
    try {
      await signIn(token.trim());
      onDone();
    } catch (error) {
      setFault(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="dialog-form" onSubmit={submit}>
      <p>
        A token says who you are and what you may do. <code>flyball token add</code> makes yours;
        the one of the daemon lies in the file <code>token</code> of its data folder, which it logs
        at its start.
      </p>
      <div class="field">
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          value={token}
          aria-describedby={fault === null ? undefined : 'token-fault'}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </div>
      {fault !== null && (
        <p class="error" id="token-fault" role="alert">
          <Outside text={fault} />
        </p>
      )}
      <div class="ends">
        <button type="submit" class="primary" disabled={busy || token.trim() === ''}>
          Sign in
        </button>
      </div>
    </form>
  );
}
