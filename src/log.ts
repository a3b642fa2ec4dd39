/** One JSON line an event, to stdout or stderr, with secrets redacted. Stage: report. */
import { type Logger, pino } from 'pino';

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

export function createLog(options: LogOptions = {}): Logger {
  return pino(
    {
      level: options.level ?? process.env.FLYBALL_LOG_LEVEL ?? 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: ['password', 'token', 'url', '*.password', '*.token', '*.url'],
    },
    pino.destination({ fd: options.fd ?? 1, sync: true }),
  );
}
