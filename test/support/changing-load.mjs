/**
 * A service under load that a test moves by messages `{ arrivals, failing }`: four at a time, 40 ms each, the others
 * wait, so that it carries 100 a second. Ends with its parent.
 */
import { createLimiter } from '../../dist/index.js';

const [url, name] = process.argv.slice(2);
const AT_ONCE = 4;
const WORK_MS = 40;
const TURN_MS = 10;
const limiter = createLimiter({ name, url, deadlineMs: 2000 });
let arrivals = 0;
let failing = false;
let owed = 0;
let working = 0;
const queue = [];

function serve() {
  return new Promise((ok, no) => {
    queue.push({ ok, no });
    begin();
  });
}

function begin() {
  while (working < AT_ONCE && queue.length > 0) {
    const { ok, no } = queue.shift();
    working += 1;
    setTimeout(() => {
      working -= 1;
      if (failing) no(new Error('the service is broken'));
      else ok();
      begin();
    }, WORK_MS);
  }
}

setInterval(() => {
  owed += (arrivals * TURN_MS) / 1000;
  for (; owed >= 1; owed -= 1) limiter.run(undefined, serve).catch(() => {});
}, TURN_MS);

process.on('message', (message) => {
  ({ arrivals, failing } = message);
});
process.on('disconnect', () => process.exit(0));
