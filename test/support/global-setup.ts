/** Before any test: the scripts module is generated and `dist` is built, so that process tests run what ships. */
import { spawnSync } from 'node:child_process';

export default function setup() {
  // `npm test` has built already; and with several projects this is called for each.
  if (process.env.SUITE_BUILT === '1') return;
  process.env.SUITE_BUILT = '1';
  const build = spawnSync('npm', ['run', '--silent', 'build'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // While one works on a part, its tests should run although another part does not compile.
  if (build.status !== 0)
    console.warn('The build failed: tests that start processes may use an old one.');
}
