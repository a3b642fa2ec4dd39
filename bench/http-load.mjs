/** The load process of the Fastify bench: keep-alive sockets, one request at a time on each, Zipf users. */
import { connect } from 'node:net';
import { zipfSubjects } from './load.mjs';

const END_OF_JSON = '}'.charCodeAt(0);
const requests = zipfSubjects(10_000).map(
  (user) => `GET / HTTP/1.1\r\nHost: bench\r\nx-user: ${user}\r\n\r\n`,
);
let next = 0;

process.on('message', async (order) => process.send(await run(order)));
process.on('disconnect', () => process.exit());

async function run({ port, ms, connections }) {
  let answers = 0;
  let bad = 0;
  const start = performance.now();
  const until = start + ms;
  const one = () =>
    new Promise((ok, no) => {
      const socket = connect(port, '127.0.0.1');
      socket.setNoDelay(true);
      const ask = () => socket.write(requests[next++ % requests.length]);
      let whole = true;
      socket.on('connect', ask);
      socket.on('error', no);
      socket.on('data', (chunk) => {
        if (whole && chunk.toString('latin1', 9, 12) !== '200') bad += 1;
        // Bodies are small JSON objects, so an answer may come in pieces but ends with its brace.
        whole = chunk.at(-1) === END_OF_JSON;
        if (!whole) return;
        answers += 1;
        if (performance.now() < until) return ask();
        socket.end();
        ok();
      });
    });
  await Promise.all(Array.from({ length: connections }, one));
  return { perSecond: (answers * 1000) / (performance.now() - start), answers, bad };
}
