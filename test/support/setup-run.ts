/** Runs set-up in a made-up machine: a PATH of chosen programs, a fake apt that does what Debian's does. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempFolder } from './temp-folder.js';

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url));
const TOOLS = ['sh', 'grep', 'sed', 'cat', 'rm', 'chmod', 'ln', 'touch', 'sleep'];

export interface Machine {
  root: string;
  bin: string;
  policy: string;
  etc: string;
  env: NodeJS.ProcessEnv;
  program(name: string, body: string): void;
  /** A fake Debian: `during` runs inside apt-get, before the package's files appear. */
  withApt(options?: { during?: string; version?: string; fails?: boolean }): void;
}

export interface SetupRun {
  status: number | null;
  stdout: string;
  stderr: string;
  found: { env: Record<string, string>; missing: Record<string, string> } | null;
}

export function newMachine(): Machine {
  const root = tempFolder('setup');
  const [bin, etc, policy] = [join(root, 'bin'), join(root, 'etc'), join(root, 'policy-rc.d')];
  for (const dir of [
    bin,
    join(etc, 'systemd/system/multi-user.target.wants'),
    join(root, 'scripts'),
  ]) {
    mkdirSync(dir, { recursive: true });
  }
  cpSync(join(SCRIPTS, 'system-packages.json'), join(root, 'scripts/system-packages.json'));
  for (const tool of TOOLS) symlinkSync(join('/bin', tool), join(bin, tool));
  const lock = { packages: { '': {}, 'node_modules/a': { version: '1.0.0' } } };
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock));
  mkdirSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'node_modules/.package-lock.json'), JSON.stringify(lock));
  const program = (name: string, body: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return {
    root,
    bin,
    etc,
    policy,
    env: { PATH: bin, APT_INSTALL_POLICY: policy, APT_INSTALL_ETC: etc },
    program,
    withApt({ during = '', version = '7.0.15', fails = false } = {}) {
      const link = `${etc}/systemd/system/multi-user.target.wants/redis-server.service`;
      program('apt-cache', `echo '  Candidate: 5:${version}-1'`);
      program('systemctl', `echo systemctl "$@" >>${root}/calls\nrm -f ${link}`);
      program(
        'service',
        `if [ "$2" = stop ]; then rm -f ${root}/running; exit 0; fi\n[ -e ${root}/running ]`,
      );
      program(
        'apt-get',
        [
          `echo apt-get "$@" >>${root}/calls`,
          'echo noise on stdout',
          `if [ "$1" = update ]; then exit 0; fi`,
          during,
          ...(fails ? ['exit 100'] : []),
          // As a package's postinst: enable, then start unless the policy says no.
          `ln -sf /lib/redis-server.service ${link}`,
          `if [ -x ${policy} ]; then ${policy} redis-server start; echo policy $? >>${root}/calls; fi`,
          `if [ ! -x ${policy} ] || ${policy} redis-server start; then touch ${root}/running; fi`,
          `printf '#!/bin/sh\\necho Redis server v=${version} sha=0\\n' >${bin}/redis-server`,
          `chmod 755 ${bin}/redis-server`,
        ].join('\n'),
      );
    },
  };
}

/** `as`: 'root', or a user whose sudo asks or does not. */
export async function runSetup(
  machine: Machine,
  options: { task?: string; install?: boolean; env?: NodeJS.ProcessEnv; uid?: number } = {},
): Promise<SetupRun> {
  const { task = 'start', install = true, env = {}, uid = 0 } = options;
  const call = JSON.stringify({ root: machine.root, task, install });
  const code = `
    process.getuid = () => ${uid};
    import(${JSON.stringify(join(SCRIPTS, 'setup.mjs'))})
      .then(({ setUp }) => setUp(${call}))
      .then((found) => console.log(JSON.stringify(found)))
      .catch((error) => { console.error(error.message); process.exitCode = 1; });`;
  const child = spawn(process.execPath, ['-e', code], { env: { ...machine.env, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const status = await new Promise<number | null>((ok) => child.once('close', ok));
  const found = status === 0 ? JSON.parse(stdout) : null;
  return { status, stdout, stderr, found };
}
