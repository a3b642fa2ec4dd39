/** The end of the demo, however it comes: what was started is ended in reverse, once; a second Ctrl-C ends it at once. Stage: demo. */
import { EXIT, FlyballError } from '../errors.js';

export interface Ending {
  add(end: () => void | Promise<void>): void;
  /** Rejects at SIGINT, SIGTERM or SIGHUP. */
  readonly interrupted: Promise<never>;
  close(): Promise<void>;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export class Interrupted extends FlyballError {
  constructor(readonly signal: (typeof SIGNALS)[number]) {
    super(
      'FLYBALL_E_DEMO_INTERRUPTED',
      `the demo was ended by ${signal}; so is all that it started.`,
    );
  }
}

export function createEnding(): Ending {
  const ends: (() => void | Promise<void>)[] = [];
  let interrupt: (error: Error) => void = () => {};
  let signals = 0;
  const interrupted = new Promise<never>((_ok, no) => {
    interrupt = no;
  });
  interrupted.catch(() => {});
  const listeners = SIGNALS.map((signal) => {
    const listener = () => {
      signals += 1;
      // Processes are killed by their own 'exit' hooks.
      if (signals > 1) process.exit(EXIT.interrupted);
      interrupt(new Interrupted(signal));
    };
    process.on(signal, listener);
    return { signal, listener };
  });

  return {
    add: (end) => void ends.push(end),
    interrupted,
    async close() {
      let fault: unknown;
      for (const end of ends.splice(0).reverse()) {
        try {
          await end();
        } catch (error) {
          // The rest must be ended all the same.
          fault ??= error;
        }
      }
      for (const { signal, listener } of listeners) process.off(signal, listener);
      if (fault !== undefined) throw fault;
    },
  };
}
