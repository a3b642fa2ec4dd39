/** Where there is no socket to watch: a web Response has ended when its body has. Stage: enforce. */

export interface BodyEnds {
  /** The last chunk has come, which is not always taken at once. */
  done(): void;
  failed(): void;
  /** Whoever read it stopped. */
  cancelled(): void;
}

/** Chunks read ahead: enough to see the end of a body of one chunk that nobody reads, too few to matter in memory. */
const AHEAD = 2;

/** The same response with a body that tells of its end once. */
export function watchBody(response: Response, ends: BodyEnds): Response {
  if (response.body === null || response.status === 101) {
    ends.done();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          ends.done();
          controller.close();
        } catch (error) {
          ends.failed();
          controller.error(error);
        }
      },
      cancel(reason) {
        ends.cancelled();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: AHEAD },
  );
  return new Response(body, response);
}
