/** The data folder of the private Redis: who may read it, and whether its disk has room; for `doctor`. Stage: cli. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolveDataDir } from '../redis/locate.js';
import type { Finding } from './doctor-finding.js';
import { clean, number } from './text.js';
import { shellWord } from './undo.js';

const LEAST_FREE_MB = 200;

/** Nothing where there is none: a shared Redis needs no folder. */
export function checkFolder(env: NodeJS.ProcessEnv): Finding[] {
  const folder = resolveDataDir({ env });
  if (!existsSync(folder)) return [];
  const check = 'data folder';
  const shown = clean(folder);
  const word = shellWord(folder) ?? '<folder>';
  const { uid, mode } = statSync(folder);
  const own = userInfo();
  if (uid !== own.uid) {
    const message = `${shown} belongs to another user (uid ${uid})`;
    const mend = 'Run flyball as that user, or set FLYBALL_DATA_DIR to a folder of your own.';
    return [{ check, status: 'warn', message, mend, command: `ls -ld ${word}` }];
  }
  if ((mode & 0o077) !== 0) {
    const message = `${shown} has mode ${(mode & 0o777).toString(8)}: others on this machine reach the private Redis`;
    return [{ check, status: 'warn', message, mend: 'Close it.', command: `chmod 700 ${word}` }];
  }
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch {
    const message = `${shown} cannot be written`;
    return [
      {
        check,
        status: 'fail',
        message,
        mend: 'Open it for yourself.',
        command: `chmod 700 ${word}`,
      },
    ];
  }
  const { bavail, bsize } = statfsSync(folder);
  const freeMb = (bavail * bsize) / 1e6;
  if (freeMb < LEAST_FREE_MB) {
    const message = `${shown} lies on a disk with ${number(Math.round(freeMb))} MB left`;
    const mend = 'Make room: Redis refuses writes when its log cannot be written.';
    return [{ check, status: 'warn', message, mend, command: `df -h ${word}` }];
  }
  return [{ check, status: 'ok', message: `${shown}, yours alone` }];
}
