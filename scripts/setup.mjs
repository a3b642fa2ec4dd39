/** Set-up: find what a task needs, say what will be installed, where and how large, then install it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand, redisAtUrl } from './find.mjs';
import { installNpm, npmInstalled } from './npm-packages.mjs';
import { installSystemPackage, planSystemPackage } from './system-packages.mjs';

/**
 * @param {{ root: string, task: string, install: boolean, env?: NodeJS.ProcessEnv,
 *   say?: (line: string) => void }} options
 * @returns {Promise<{ env: Record<string, string>, missing: Record<string, string> }>} `env`: where things are, for
 *   the task; `missing`: by system package, the sentence that says why it is not there and what to do
 * @throws when npm packages are needed and cannot be installed: then nothing can run
 */
export async function setUp({ root, task, install, env = process.env, say = toStderr }) {
  const list = JSON.parse(readFileSync(join(root, 'scripts/system-packages.json'), 'utf8'));
  const found = { env: {}, missing: {} };
  const plans = [];
  const talk = [];

  const npmNeeded = !npmInstalled(root);
  if (npmNeeded) {
    talk.push(`npm packages into ${join(root, 'node_modules')}, about ${list.npm.megabytes} MB`);
  }
  for (const name of neededPackages(list, task)) {
    const wanted = list.packages[name];
    const have = await findPackage(wanted, task, env);
    if (have.path) found.env[wanted.override] = have.path;
    if (have.path || have.url) continue;
    const plan = have.fault ? { fault: have.fault } : await planSystemPackage(name, wanted, env);
    if (plan.fault) found.missing[name] = plan.fault;
    else if (!install) found.missing[name] = notAllowed(name, wanted, plan.manual);
    else {
      plans.push({ name, wanted, plan });
      talk.push(
        `${plan.describe}, about ${wanted.megabytes} MB, its service neither started nor enabled`,
      );
    }
  }
  if (npmNeeded && !install) {
    throw new Error(
      'npm packages are missing and --no-install forbids installing them: run `npm ci` first.',
    );
  }
  if (talk.length) say(`flyball set-up installs: ${talk.join('; ')}.`);

  if (npmNeeded) await installNpm(root);
  for (const { name, wanted, plan } of plans) {
    const fault = await installSystemPackage(plan, env);
    const have = fault ? { fault } : await findPackage(wanted, task, env);
    if (have.path) found.env[wanted.override] = have.path;
    else found.missing[name] = have.fault ?? `${plan.describe} brought no ${name}. ${plan.manual}`;
  }
  return found;
}

/** A test run needs what any of its suites needs. */
function neededPackages(list, task) {
  if (task !== 'test') return list.tasks[task] ?? [];
  return [...new Set(Object.values(list.suites).flat())];
}

/** @returns {Promise<{ path?: string, url?: string, fault?: string }>} nothing at all when it is not there */
async function findPackage(wanted, task, env) {
  // Tests start and kill their own servers, so a URL is of no use to them.
  if (env.FLYBALL_REDIS_URL && task !== 'test' && !wanted.probe) {
    const fault = await redisAtUrl(env, wanted.minimum);
    return fault ? { fault } : { url: env.FLYBALL_REDIS_URL };
  }
  return findCommand(wanted, env);
}

function notAllowed(name, wanted, manual) {
  return `${name} ${wanted.minimum} or newer is not on PATH and --no-install forbids installing it. ${manual}`;
}

function toStderr(line) {
  process.stderr.write(`${line}\n`);
}
