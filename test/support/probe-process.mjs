/** One of many service processes before one upstream: asks as often as it can; each admitted call ends as stdin says. */
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { createLimiter } from '../../dist/index.js';

const [url, name, log] = process.argv.slice(2);
const limiter = createLimiter({ name, url, deadlineMs: 5000, rate: 1, capacity: 1 });
const redis = new Redis(url);
let ends = 'ok';
let released = () => {};
let release = new Promise((ok) => {
  released = ok;
});

async function work() {
  // By Redis's own clock, and after it was admitted: never earlier than it was.
  await redis.xadd(log, '*', 'pid', process.pid, 'ends', ends);
  if (ends === 'hang') await release;
  if (ends === 'fail') throw new Error('upstream');
}
setInterval(() => void limiter.run(undefined, work).catch(() => {}), 20);
createInterface({ input: process.stdin }).on('line', (line) => {
  ends = line;
  released();
  release = new Promise((ok) => {
    released = ok;
  });
});
process.stdin.on('end', () => process.exit(0));
process.stdout.write('ready\n');
