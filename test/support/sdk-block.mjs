/** A service process for tests of blocks: takes as fast as it may, and writes a byte for each that was admitted. */
import { writeSync } from 'node:fs';
import { createLimiter } from '../../dist/index.js';

const [url, name] = process.argv.slice(2);
const limiter = createLimiter({ name, url, deadlineMs: 5000, draw: 'block', denyCache: false });

for (;;) {
  const { allowed, source } = await limiter.take();
  // Written at once: what a killed process passed is known to the last take.
  if (allowed) writeSync(1, source === 'block' ? 'b' : 'e');
  else writeSync(1, '.');
  // Some use, not all at once: blocks are drawn again and again.
  await new Promise((ok) => setTimeout(ok, allowed ? 1 : 20));
}
