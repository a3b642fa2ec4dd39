/** A log that keeps what was written to it, for tests that look at what was said, or that no secret was. */
import { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';

export interface KeptLog {
  readonly log: Logger;
  /** All of it, as lines of JSON. */
  readonly text: string;
}

export function keptLog(): KeptLog {
  let text = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return {
    log: pino(stream),
    get text() {
      return text;
    },
  };
}
