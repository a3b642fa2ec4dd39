/** A service process for tests of fair shares: offers each subject its own rate for a while, then tells what became of it. */
import { createLimiter } from '../../dist/index.js';

const [url, name, load, ms] = process.argv.slice(2);
const perSecond = JSON.parse(load);
const limiter = createLimiter({ name, url, deadlineMs: 2000, topSubjects: false });
await limiter.ready();
const tallies = {};
const pending = [];
const subjects = Object.keys(perSecond);
for (const subject of subjects) tallies[subject] = { offered: 0, admitted: 0, reasons: {} };

async function one(subject) {
  const { allowed, reason } = await limiter.take(subject);
  const tally = tallies[subject];
  tally.offered += 1;
  if (allowed) tally.admitted += 1;
  else tally.reasons[reason] = (tally.reasons[reason] ?? 0) + 1;
}

const begin = performance.now();
const sent = Object.fromEntries(subjects.map((subject) => [subject, Math.random()]));
const timer = setInterval(async () => {
  const seconds = (performance.now() - begin) / 1000;
  for (const subject of subjects) {
    // A machine that stood still must not be followed by a burst of all that it missed.
    const due = Math.min(seconds * perSecond[subject], sent[subject] + 20);
    for (; sent[subject] < due; sent[subject] += 1) pending.push(one(subject));
    sent[subject] = Math.max(sent[subject], seconds * perSecond[subject]);
  }
  if (seconds * 1000 < Number(ms)) return;
  clearInterval(timer);
  await Promise.all(pending);
  process.stdout.write(JSON.stringify(tallies));
  await limiter.close();
}, 10);
