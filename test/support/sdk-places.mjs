/** A service process for tests of places: works in short requests under the cap, and tells Redis how many are under way. */
import { Redis } from 'ioredis';
import { createLimiter } from '../../dist/index.js';

const [url, name, tally] = process.argv.slice(2);
const limiter = createLimiter({ name, url, deadlineMs: 2000, completions: true });
const redis = new Redis(url);
const id = String(process.pid);
let busy = 0;
let done = 0;

/** One worker: takes, works for a moment, ends. What is under way is told before and after. */
async function work() {
  for (;;) {
    const decision = await limiter.take();
    if (decision.allowed) {
      busy += 1;
      await redis.hset(tally, id, busy);
      await new Promise((ok) => setTimeout(ok, 5 + Math.floor(Math.random() * 20)));
      busy -= 1;
      await redis.hset(tally, id, busy);
      decision.done();
      done += 1;
    }
    await new Promise((ok) => setTimeout(ok, 5));
  }
}
for (let i = 0; i < 3; i += 1) void work();
setInterval(() => process.stdout.write(`${JSON.stringify({ done, ...limiter.stats() })}\n`), 100);
