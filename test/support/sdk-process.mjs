/** A service process for tests of shares: holds as many requests as it gets, and prints what it holds. */
import { createLimiter } from '../../dist/index.js';

const [url, name, want] = process.argv.slice(2);
const limiter = createLimiter({ name, url, deadlineMs: 2000, completions: true });
let held = 0;

async function fill() {
  while (held < Number(want)) {
    const decision = await limiter.take();
    if (!decision.allowed) break;
    held += 1;
  }
  const { share, processes } = limiter.stats();
  process.stdout.write(`${JSON.stringify({ held, share, processes })}\n`);
  setTimeout(fill, 100);
}
void fill();
