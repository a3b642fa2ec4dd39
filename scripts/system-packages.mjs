/** System packages: which manager, may we, what would come; and the install that leaves no service behind. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChild } from './child.mjs';
import { newEnough } from './find.mjs';

const APT_SCRIPT = fileURLToPath(new URL('apt-install.sh', import.meta.url));

/** In the order they are looked for. Only Debian's packages start and enable their service by themselves. */
const MANAGERS = {
  'apt-get': { names: 'apt', root: true, install: (pkg) => ['sh', APT_SCRIPT, pkg] },
  dnf: { names: 'dnf', root: true, install: (pkg) => ['dnf', 'install', '-y', pkg] },
  apk: { names: 'apk', root: true, install: (pkg) => ['apk', 'add', pkg] },
  brew: { names: 'brew', root: false, install: (pkg) => ['brew', 'install', pkg] },
};

/**
 * How a missing package would be installed here, or why it cannot be.
 * @returns {Promise<{ describe?: string, command?: string[], candidates?: string[], manual: string, fault?: string }>}
 */
export async function planSystemPackage(name, { minimum, names, probe, override }, env) {
  const tool = Object.keys(MANAGERS).find((command) => onPath(command, env));
  const instead = probe ? override : 'FLYBALL_REDIS_URL';
  const missing = `Flyball needs ${name} ${minimum} or newer, and none is on PATH`;
  if (!tool) {
    const manual = `Install it, or set ${probe ? '' : 'FLYBALL_REDIS_SERVER or '}${instead}.`;
    return {
      manual,
      fault: `${missing}, nor one of ${Object.keys(MANAGERS).join(', ')}. ${manual}`,
    };
  }
  const manager = MANAGERS[tool];
  const candidates = names[manager.names];
  const by = `${tool} install ${candidates[0]}`;
  const manual = `Run \`${manager.root ? 'sudo ' : ''}${by}\`, or set ${instead}.`;
  const isRoot = process.getuid?.() === 0;
  if (manager.root && !isRoot && !sudoWithoutPassword(env)) {
    return {
      manual,
      fault: `${missing}; set-up is neither root nor has sudo without a password. ${manual}`,
    };
  }
  if (!manager.root && isRoot) {
    return { manual, fault: `${missing}; ${tool} refuses to run as root. ${manual}` };
  }
  return {
    manual,
    candidates,
    minimum,
    install: (pkg) => [...(manager.root && !isRoot ? ['sudo', '-n'] : []), ...manager.install(pkg)],
    describe: `${candidates[0]} for the whole system by ${tool}`,
    knownVersion: tool === 'apt-get' ? aptVersion : undefined,
  };
}

/** @returns {Promise<string | null>} the fault, or null */
export async function installSystemPackage(plan, env) {
  let fault;
  for (const pkg of plan.candidates) {
    const version = plan.knownVersion?.(pkg, env);
    // The first may be unknown only because the lists are empty; once they are read, another must be known.
    if (fault && plan.knownVersion && !version) continue;
    if (version && !newEnough(version, plan.minimum)) {
      fault ??= `the system's ${pkg} is ${version}, and ${plan.minimum} or newer is needed. ${plan.manual}`;
      continue;
    }
    const status = await runChild(plan.install(pkg), { env, quietStdout: true });
    if (status === 0) return null;
    if (status > 128) return `installing ${pkg} was interrupted. ${plan.manual}`;
    fault ??= `installing ${pkg} failed (exit ${status}). ${plan.manual}`;
  }
  return fault;
}

/** The version apt would install, without its epoch; undefined while apt does not know the package. */
function aptVersion(pkg, env) {
  const run = spawnSync('apt-cache', ['policy', pkg], { encoding: 'utf8', env });
  return /Candidate: (?:\d+:)?(\d+(?:\.\d+)*)/.exec(run.stdout ?? '')?.[1];
}

function sudoWithoutPassword(env) {
  return (
    onPath('sudo', env) && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore', env }).status === 0
  );
}

function onPath(command, env) {
  return (env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
