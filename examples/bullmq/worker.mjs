// A BullMQ worker behind a limiter: a job is processed, or goes back to the queue until its turn comes.
import { DelayedError, Worker } from 'bullmq';
import { createLimiter, createQueueGate } from 'flyball';
import { Redis } from 'ioredis';

const limiter = createLimiter({ name: 'mails', rate: 20, capacity: 10 });
const gate = createQueueGate(limiter, { costs: { sheddable: 2 } });
const connection = new Redis(process.env.FLYBALL_REDIS_URL, { maxRetriesPerRequest: null });

/** BullMQ: 1 is the most urgent, 0 has no priority. */
const priorityOf = ({ priority = 0 }) =>
  priority === 1 ? 'critical' : priority > 5 ? 'sheddable' : 'default';

const worker = new Worker(
  'mails',
  async (job, token) => {
    const answer = await gate.ask({
      subject: job.data.tenant ?? null,
      priority: priorityOf(job.opts),
    });
    if (answer.action === 'delay') {
      await job.moveToDelayed(Date.now() + answer.delayMs, token);
      // Not a failure, and no attempt: the job has been moved.
      throw new DelayedError();
    }
    try {
      console.log(JSON.stringify({ sent: job.id, priority: job.opts.priority ?? 0 }));
      answer.decision.done('ok');
    } catch (error) {
      answer.decision.done('failed');
      throw error;
    }
  },
  { connection, concurrency: 10 },
);
worker.on('error', (error) => console.error(error.message));
// Jobs under way first; then telemetry is sent.
process.once('SIGTERM', async () => {
  await worker.close();
  await limiter.close();
  connection.disconnect();
});
