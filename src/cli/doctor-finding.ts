/** One thing that `doctor` found, and the command that mends it. Stage: cli. */
import type { Redis } from 'ioredis';
import { shellWord } from './undo.js';

export interface Finding {
  check: string;
  status: 'ok' | 'warn' | 'fail' | 'skipped';
  message: string;
  /** What to do; absent when all is well. */
  mend?: string;
  /** The same as one line to paste, where a line does it. */
  command?: string;
}

type Server = Pick<Redis, 'options'>;

/** `redis-cli` on this server, to paste: without its password, for which it then asks. */
export function redisCli({ options }: Server, args: string): string {
  const { path, host, port, username, password, tls } = options;
  const where = path
    ? `-s ${shellWord(path) ?? '<socket>'}`
    : `-h ${shellWord(host ?? '127.0.0.1') ?? '<host>'} -p ${port ?? 6379}`;
  const user = username ? ` --user ${shellWord(username) ?? '<user>'}` : '';
  return `redis-cli ${where}${tls ? ' --tls' : ''}${user}${password ? ' --askpass' : ''} ${args}`;
}

/** Sets it now; the second line keeps it over a restart, where the server has a file of settings. */
export function configSet(server: Server, setting: string): string {
  return `${redisCli(server, `CONFIG SET ${setting}`)} && ${redisCli(server, 'CONFIG REWRITE')}`;
}
