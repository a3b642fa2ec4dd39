/** The steps of a leader's turn as Redis sees them, and how a real daemon is killed at one of them. */

import { limiterKeys } from '../../src/redis/keys.js';
import {
  actuateScript,
  heartbeatScript,
  leaseScript,
  rereadScript,
} from '../../src/redis/scripts.gen.js';
import { MOVED } from './fault-policies.js';
import { gone, type Member } from './fault-rig.js';

const keys = limiterKeys({ name: MOVED });

/** What a request of that step holds, all of it. */
export const STEPS = {
  lease: [leaseScript.sha, keys.lease],
  sense: [`${keys.params.slice(0, -'params'.length)}t:`],
  read: [rereadScript.sha, keys.params],
  write: [actuateScript.sha, keys.params],
  beat: [heartbeatScript.sha, keys.params],
  status: ['set', keys.status],
} as const;
export type TurnStep = keyof typeof STEPS;

/**
 * Before Redis gets the request; when Redis has done it and the daemon does not know. Who knows, and dies then, dies
 * before the next step is asked for.
 */
export const MOMENTS = ['asked', 'unheard'] as const;
export type Moment = (typeof MOMENTS)[number];

/** Kills -9 a daemon at the next such moment; false: it did not come within the time, and the daemon lives. */
export async function killAt(
  { child, proxy }: Member,
  step: TurnStep,
  moment: Moment,
  withinMs: number,
): Promise<boolean> {
  if (!child) return false;
  let asked: object | null = null;
  const hit = new Promise<boolean>((ok) => {
    const late = setTimeout(ok, withinMs, false);
    const kill = () => {
      child.kill('SIGKILL');
      clearTimeout(late);
      ok(true);
    };
    proxy.watch = (bytes, from, connection) => {
      if (
        from === 'client' &&
        asked === null &&
        STEPS[step].every((part) => bytes.includes(part))
      ) {
        asked = connection;
        if (moment !== 'asked') return true;
        kill();
        return false;
      }
      if (from !== 'server' || asked !== connection) return true;
      kill();
      return false;
    };
  });
  const killed = await hit;
  proxy.watch = null;
  if (killed) await gone(child);
  return killed;
}
