/** The dashboard's start: asks who one is and what there is to show, and draws. Stage: dashboard. */
import { render } from 'preact';
import { readSession } from './data/session.js';
import { current } from './data/store.js';
import { watch } from './data/stream.js';
import { parseRoute, watchedBy } from './routing.js';
import { App } from './shell/app.jsx';

// On this machine reading needs no token: what is shown first need not wait for the answer who one is.
if (/^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname)) {
  watch(watchedBy(parseRoute(location.hash)));
}
render(<App />, document.getElementById('page')!);

/** Asked until someone answers: a page opened while the daemon starts finds it by itself. */
async function begin(): Promise<void> {
  await readSession();
  if (current().session === null) setTimeout(() => void begin(), 1000);
}
void begin();
