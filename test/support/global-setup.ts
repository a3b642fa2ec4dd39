/** Before any test: the scripts module is generated and `dist` is built, so that process tests run what ships. */
import { execFileSync } from 'node:child_process';

export default function setup() {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'inherit', 'inherit'] });
}
