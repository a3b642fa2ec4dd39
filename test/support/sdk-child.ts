/** Starts `sdk-process.mjs` and keeps the last line it printed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface SdkChild {
  readonly last: { held: number; share: number | null; processes: number };
  kill(signal?: NodeJS.Signals): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

const SCRIPT = fileURLToPath(new URL('./sdk-process.mjs', import.meta.url));

export function startSdkChild(url: string, name: string, want: number): SdkChild {
  const child: ChildProcess = spawn(process.execPath, [SCRIPT, url, name, String(want)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let last: SdkChild['last'] = { held: 0, share: null, processes: 0 };
  createInterface({ input: child.stdout! }).on('line', (line) => {
    last = JSON.parse(line);
  });
  return {
    get last() {
      return last;
    },
    async kill(signal = 'SIGKILL') {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill(signal);
      await gone;
    },
    signal: (signal) => void child.kill(signal),
  };
}
