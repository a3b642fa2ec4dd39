/** One of many service processes under one in-flight cap: as many workers as stdin says; Redis counts what is under way. */
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { createLimiter } from '../../dist/index.js';

const [url, name, tally, exact] = process.argv.slice(2);
const id = String(process.pid);
/** One place that counts: what each process has under way, all together, and the most there ever was. */
const COUNT = `
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
local all = redis.call('HINCRBY', KEYS[1], 'all', ARGV[2])
if all > tonumber(redis.call('HGET', KEYS[1], 'most') or 0) then redis.call('HSET', KEYS[1], 'most', all) end`;
const limiter = createLimiter({
  name,
  url,
  deadlineMs: 5000,
  completions: true,
  ...(exact === 'exact' && { exact: true }),
});
const redis = new Redis(url);
let workers = 0;
let wanted = 0;
const pause = (ms) => new Promise((ok) => setTimeout(ok, ms));
const count = (by) => redis.eval(COUNT, 1, tally, id, by);

async function work(index) {
  while (index < wanted) {
    const decision = await limiter.take();
    if (decision.allowed) {
      await count(1);
      await pause(150 + ((index * 37) % 150));
      await count(-1);
      decision.done();
    } else await pause(80 + ((index * 13) % 40));
  }
  workers -= 1;
}
createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line);
  while (workers < wanted) {
    workers += 1;
    void work(workers - 1);
  }
});
process.stdin.on('end', () => process.exit(0));
