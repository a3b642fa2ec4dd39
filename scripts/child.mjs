/** Run a command to its end as if it were this process: same streams, signals handed on, its exit code. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/**
 * @param {string[]} command
 * @param {{ env?: NodeJS.ProcessEnv, cwd?: string, quietStdout?: boolean }} [options] `quietStdout`: what the command
 *   prints goes to stderr, so that stdout stays for a result
 * @returns {Promise<number>} exit code, 128 + n for a signal, 127 when it cannot be started
 */
export function runChild([file, ...args], { env = process.env, cwd, quietStdout = false } = {}) {
  const child = spawn(file, args, {
    env,
    cwd,
    stdio: ['inherit', quietStdout ? process.stderr : 'inherit', 'inherit'],
  });
  // A terminal sends Ctrl-C to the whole group, so the child has it already; a second one would mean "at once".
  const onInterrupt = () => process.stdin.isTTY || child.kill('SIGINT');
  const onTerminate = () => child.kill('SIGTERM');
  const onHangup = () => child.kill('SIGHUP');
  const handlers = { SIGINT: onInterrupt, SIGTERM: onTerminate, SIGHUP: onHangup };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  return new Promise((ok) => {
    const end = (code) => {
      for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler);
      ok(code);
    };
    child.once('error', (error) => {
      process.stderr.write(`${file} cannot be started: ${error.message}\n`);
      end(127);
    });
    child.once('exit', (code, signal) => end(code ?? 128 + constants.signals[signal]));
  });
}
