/** One JSON line an event, to stdout or stderr, with secrets redacted. Stage: report. */
import { type Logger, pino } from 'pino';
import { UNSAFE } from './unsafe.js';

export type { Logger };

export interface LogOptions {
  level?: string;
  /** File descriptor: 1 for the daemon, 2 for commands whose stdout is a result. */
  fd?: 1 | 2;
}

/** Redis and database URLs keep host and database, never the password. */
export function redactUrl(url: string): string {
  return url.replace(/\/\/([^/@]*)@/, (_all, userinfo: string) => {
    const user = userinfo.split(':')[0];
    return `//${user ? `${user}:` : ''}***@`;
  });
}

/** What servers, services and people sent is in it, and logs are read in terminals: only its own line break is obeyed. */
export function inertLine(line: string): string {
  return line.replace(UNSAFE, (char) =>
    char === '\n' ? char : `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}

/** Lines that wait for a disk that is full, in bytes; later ones are lost. */
const MOST_WAITING = 1_048_576;

export function createLog(options: LogOptions = {}): Logger {
  const { fd = 1 } = options;
  const destination = pino.destination({ fd, sync: true, maxLength: MOST_WAITING });
  // A log that cannot be written (its disk is full) ends nobody: what limits traffic goes on, and lines wait.
  destination.on('error', () => {});
  return pino(
    {
      level: options.level ?? process.env.FLYBALL_LOG_LEVEL ?? 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: inertLine },
      redact: ['password', 'token', 'url', '*.password', '*.token', '*.url'],
    },
    destination,
  );
}
