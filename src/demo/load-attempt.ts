/** One HTTP request of the load generator: keep-alive, a timeout, and how it ended. Stage: demo. */
import http from 'node:http';

export interface Outcome {
  /** `refused`: 429 or 503 with Retry-After, turned away at the door. `broken`: no HTTP answer at all. */
  kind: 'ok' | 'refused' | 'failed' | 'timedOut' | 'broken';
  ms: number;
  retryAfterMs?: number;
}

export function createClient(url: string, timeoutMs: number) {
  const target = new URL(url);
  const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 4096 });
  const options = {
    agent,
    method: 'POST',
    host: target.hostname,
    port: target.port,
    headers: { 'content-length': '0' },
  };

  return {
    attempt(path: string, done: (outcome: Outcome) => void): void {
      const from = performance.now();
      let over = false;
      const end = (kind: Outcome['kind'], retryAfterMs?: number) => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        const ms = performance.now() - from;
        done(retryAfterMs === undefined ? { kind, ms } : { kind, ms, retryAfterMs });
      };
      const request = http.request({ ...options, path }, (response) => {
        response.resume();
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          const after = Number(response.headers['retry-after']);
          if (status < 400) end('ok');
          else if ((status === 429 || status === 503) && after > 0) end('refused', after * 1000);
          else end('failed');
        });
        response.on('error', () => end('broken'));
      });
      request.on('error', () => end('broken'));
      const timer = setTimeout(() => {
        end('timedOut');
        // A reset, not a goodbye: thousands a second would else fill the ports with TIME_WAIT.
        request.socket?.resetAndDestroy();
        request.destroy();
      }, timeoutMs);
      request.end();
    },
    close: () => agent.destroy(),
  };
}
