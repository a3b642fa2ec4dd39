/** The demo's checkout behind an in-process Vegas: its fixed cap, moved by what the process itself sees of requests. */
import { subscribe } from 'node:diagnostics_channel';
import { createVegas } from './protect-vegas-limit.mjs';

process.env.GUARD = 'cap';
const vegas = createVegas();
let inFlight = 0;

subscribe('http.server.request.start', ({ response }) => {
  const beganMs = performance.now();
  inFlight += 1;
  response.once('close', () => {
    const refused = response.statusCode === 503;
    const atMs = performance.now();
    if (!refused) {
      const lost = !response.writableFinished;
      if (vegas.ended({ atMs, ms: atMs - beganMs, lost, inFlight })) setCap();
    }
    inFlight -= 1;
  });
});

await import('../dist/demo/checkout-service.js');
setCap();

function setCap() {
  process.emit('message', { type: 'cap', cap: vegas.limit });
}
