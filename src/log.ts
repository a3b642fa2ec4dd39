/** One JSON line an event, to stdout or stderr, with secrets redacted. Stage: report. */
import { type Logger, pino } from 'pino';
import { inertLine } from './unsafe.js';

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

/** The same of a text, and without the secrets that are known. */
export function redacted(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret.length > 0);
  return known.reduce((rest, secret) => rest.replaceAll(secret, '***'), redactUrl(text));
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
