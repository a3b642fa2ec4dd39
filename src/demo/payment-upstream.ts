/** The payment provider that the checkout calls: answers in some 20 ms, or fails at once when told to. Stage: demo. */
import { createServer } from 'node:http';

const ANSWER_MS = 20;
let failing = false;

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    if (failing) {
      response.writeHead(500, { 'content-type': 'application/json' });
      response.end('{"code":"SYSTEMERROR"}');
      return;
    }
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"paid":true}');
    }, ANSWER_MS);
  });
});
server.keepAliveTimeout = 60_000;

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.send?.({ type: 'ready', url: `http://127.0.0.1:${port}` });
});

process.on('message', (message: { type: string; failing?: boolean }) => {
  if (message.type === 'upstream') failing = message.failing === true;
});
// Without the demo there is nobody to serve.
process.on('disconnect', () => process.exit(0));
