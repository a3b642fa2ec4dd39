/** Services under load for tests of the dashboard: what each limiter is asked for, by which subjects. Ends with its parent. */
import { createLimiter } from '../../dist/index.js';

const [url, plan] = process.argv.slice(2);
const TURN_MS = 20;
/** Slower the more are under way, as a database is. */
const workMs = (underWay) => 20 + 4 * underWay;

for (const { name, perSecond, subjects } of JSON.parse(plan)) {
  const limiter = createLimiter({ name, url, deadlineMs: 2000 });
  let owed = 0;
  let underWay = 0;
  let turn = 0;
  const work = async () => {
    underWay += 1;
    await new Promise((ok) => setTimeout(ok, workMs(underWay)));
    underWay -= 1;
  };
  setInterval(() => {
    // It comes and goes over some minutes.
    const wave = 1 + 0.6 * Math.sin(Date.now() / 45_000);
    owed += (perSecond * wave * TURN_MS) / 1000;
    for (; owed >= 1; owed -= 1) {
      turn += 1;
      limiter.run(subjects[(turn * turn) % subjects.length], work).catch(() => {});
    }
  }, TURN_MS);
}
process.on('disconnect', () => process.exit(0));
