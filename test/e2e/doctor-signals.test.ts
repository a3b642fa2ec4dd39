/** `flyball doctor` with a folder of policies: each signal by name, what it answers, and the mend of one that does not. Stage: tests. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { readingRig } from '../support/reading-rig.js';
import { freePort } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

const rig = readingRig();
let page: Server;
let folder: string;

beforeAll(async () => {
  page = createServer((_request, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end('# TYPE queue_depth gauge\nqueue_depth 7\n');
  });
  await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
  folder = join(tempFolder('doctor-signals'), 'policies');
  mkdirSync(folder);
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/metrics`;
  const dead = `http://127.0.0.1:${await freePort()}`;
  writeFileSync(
    join(folder, 'checkout.ts'),
    `import { definePolicy, postgres, env, prometheus, scrape, telemetry } from 'flyball';
export default definePolicy({
  limiter: { name: 'checkout', rate: 100, capacity: 200 },
  signals: {
    queue: scrape.gauge('${url}', 'queue_depth'),
    gone: prometheus('sum(jobs)', { url: '${dead}' }),
    db: postgres.waiting({ url: env('NOT_SET_DB') }),
    p95: telemetry.latency('p95'),
  },
});`,
  );
  writeFileSync(
    join(folder, 'search.ts'),
    `import { definePolicy, scrape } from 'flyball';
export default definePolicy({
  limiter: { name: 'search', rate: 10, capacity: 20 },
  signals: { depth: scrape.gauge('${url}', 'queue_depht') },
});`,
  );
});
afterAll(() => {
  page.closeAllConnections();
  page.close();
});

interface Finding {
  check: string;
  status: string;
  message: string;
  mend?: string;
  command?: string;
}

/** A service reports all the while: policies are loaded first, which takes some seconds on a busy machine. */
async function whileReported<T>(work: () => Promise<T>): Promise<T> {
  const fields = {
    ...{ [FIELD.process('p1')]: 1, [FIELD.flushes]: 1 },
    ...{ [FIELD.offered]: 10, [FIELD.admitted]: 10 },
  };
  let ended = false;
  const reports = (async () => {
    while (!ended) {
      await rig.telemetry(fields);
      await setTimeout(300);
    }
  })();
  return work().finally(() => {
    ended = true;
    return reports;
  });
}

test('each signal of each policy is asked: what answers, and what does not with its mend; services that report', async () => {
  const shown = await whileReported(() => rig.run(`doctor ${folder} --json`));
  expect(shown.code).toBe(1);
  const { findings } = JSON.parse(shown.stdout) as { findings: Finding[] };
  const of = (check: string) => findings.filter((finding) => finding.check === check);
  expect(of('policies')).toEqual([
    { check: 'policies', status: 'ok', message: 'valid: checkout, search' },
  ]);
  // A signal of telemetry has no source that could be asked: services report, or none does.
  const asked = findings.map(({ check }) => check).filter((check) => check.startsWith('signal '));
  expect(asked.sort()).toEqual([
    ...['signal checkout.db', 'signal checkout.gone', 'signal checkout.queue'],
    'signal search.depth',
  ]);
  expect(of('signal checkout.queue')).toEqual([
    { check: 'signal checkout.queue', status: 'ok', message: 'answers: 7' },
  ]);
  const failed = {
    status: 'fail',
    mend: 'Check the address and rights of this source, and the variables the policy names.',
  };
  const live = { command: `flyball check ${join(folder, 'checkout.ts')} --live` };
  expect(of('signal checkout.gone')).toEqual([
    {
      ...{ check: 'signal checkout.gone', ...failed, ...live },
      message: expect.stringMatching(/^unreachable: /),
    },
  ]);
  expect(of('signal checkout.db')).toEqual([
    {
      ...{ check: 'signal checkout.db', ...failed, ...live },
      message: expect.stringContaining('NOT_SET_DB'),
    },
  ]);
  expect(of('signal search.depth')).toEqual([
    {
      ...{ check: 'signal search.depth', status: 'warn' },
      message: 'no_data: the page has no metric queue_depht. It has: queue_depth.',
      mend: 'It will answer once there is something to see.',
    },
  ]);
  expect(of('telemetry checkout')[0]).toMatchObject({
    status: 'ok',
    message: '1 process reports, 0 of them completions',
  });
  expect(of('telemetry search')[0]).toMatchObject({
    status: 'warn',
    message: expect.stringMatching(/^no service reports/),
    mend: expect.stringContaining('createLimiter'),
  });
});
