/** `GET /stream`: what changes, as server-sent events; a client that does not read is cut, too many, or too many of one, are told to come later. Stage: api. */
import { z } from 'zod';
import type { LimiterAddress } from '../redis/keys.js';
import { findLimiter } from '../view/limiters.js';
import { ApiError } from './problem.js';
import { type Call, route } from './route.js';
import { MOST_OF_A_CLIENT } from './stream-places.js';

const HEARTBEAT_MS = 10_000;
/** Unread bytes of a client, beside the picture it began with; past it the next event ends it. */
const MOST_UNREAD = 4_000_000;

const encoder = new TextEncoder();
// Reconnects are left to the browser's own pace, a little faster than its default.
const RETRY = encoder.encode('retry: 2000\n\n');
const ALIVE = encoder.encode(': alive\n\n');

const query = z.strictObject({ limiter: z.string().optional() });

export const streamRoute = route({
  method: 'get',
  path: '/stream',
  id: 'stream',
  summary:
    'What changes, as server-sent events: `snapshot`, then `limiters`, `audit`, `tick`. `Last-Event-ID` brings what was missed while it is known, else a snapshot.',
  role: 'reader',
  query,
  answer: z.object({}),
  faults: [404, 503],
  handle: streamAnswer,
});

async function streamAnswer(call: Call<z.output<typeof query>, unknown>): Promise<Response> {
  const { limiter } = call.query;
  const address = limiter === undefined ? null : await findLimiter(call.session, limiter);
  const leavePlace = call.deps.streams.take(call.client);
  if (leavePlace === null) throw tooManyOfOne();
  const body = eventStream(call, address, leavePlace);
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      // nginx passes each event on as it comes.
      'x-accel-buffering': 'no',
    },
  });
}

function eventStream(
  call: Call<unknown, unknown>,
  address: LimiterAddress | null,
  leavePlace: () => void,
): ReadableStream {
  let leave: (() => void) | null = null;
  let heartbeat: NodeJS.Timeout | null = null;
  /** Of pictures and of what was missed: they may be longer than what a slow reader may leave unread. */
  let allowed = MOST_UNREAD;
  let over = false;

  function stop(): void {
    over = true;
    if (heartbeat !== null) clearInterval(heartbeat);
    leave?.();
    leavePlace();
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const cut = () => {
          stop();
          call.hangUp();
        };
        const send = (bytes: Uint8Array, whole: boolean) => {
          if (over) return;
          const unread = -(controller.desiredSize ?? 0);
          if (whole) allowed = Math.max(allowed, unread + bytes.byteLength + MOST_UNREAD);
          else if (unread > allowed) return cut();
          else if (unread <= 0) allowed = MOST_UNREAD;
          controller.enqueue(bytes);
        };
        const end = () => {
          if (over) return;
          stop();
          controller.close();
        };
        send(RETRY, false);
        leave = call.deps.watch.join(address, call.header('last-event-id'), { send, end });
        if (leave === null) {
          stop();
          throw tooMany();
        }
        heartbeat = setInterval(() => {
          if (call.stillMay()) send(ALIVE, false);
          else cut();
        }, call.deps.heartbeatMs ?? HEARTBEAT_MS);
        heartbeat.unref();
      },
      cancel: stop,
    },
    { highWaterMark: 0, size: (chunk) => chunk.byteLength },
  );
}

function tooManyOfOne(): ApiError {
  return new ApiError(
    429,
    'FLYBALL_E_API_STREAMS',
    `You follow ${MOST_OF_A_CLIENT} streams of this daemon already, as many as one token, or one address without a token, may. Close one.`,
    { headers: { 'retry-after': '10' } },
  );
}

function tooMany(): ApiError {
  return new ApiError(
    503,
    'FLYBALL_E_API_STREAMS',
    'Too many clients follow the stream of this daemon. Close one, or ask another daemon: each serves all limiters.',
    { headers: { 'retry-after': '10' } },
  );
}
