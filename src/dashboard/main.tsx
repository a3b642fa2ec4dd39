/** The dashboard's start: asks who one is, then draws. Stage: dashboard. */
import { render } from 'preact';
import { readSession } from './data/session.js';
import { current } from './data/store.js';
import { App } from './shell/app.jsx';

render(<App />, document.getElementById('page')!);

/** Asked until someone answers: a page opened while the daemon starts finds it by itself. */
async function begin(): Promise<void> {
  await readSession();
  if (current().session === null) setTimeout(() => void begin(), 1000);
}
void begin();
