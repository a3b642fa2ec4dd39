/** A process that uses the embedded Redis of the folder it is given: says what it got, releases on SIGTERM. */
import { pino } from 'pino';
import { startEmbeddedRedis } from '../../dist/redis/embedded.js';

const [dataDir, deadlineMs = '20000'] = process.argv.slice(2);
const stay = setInterval(() => {}, 1_000);
try {
  const log = pino({ level: 'silent' });
  const redis = await startEmbeddedRedis({ dataDir, log, deadlineMs: Number(deadlineMs) });
  process.once('SIGTERM', async () => {
    await redis.release();
    process.exit(0);
  });
  console.log(JSON.stringify({ url: redis.url, joined: redis.joined }));
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
  clearInterval(stay);
}
