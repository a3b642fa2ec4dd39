/** Every fault of a schedule: how it begins, and how it ends. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { freeze } from '../../src/actuate/verbs/freeze.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import type { Planner } from '../../src/actuate/verbs/plan.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { MOVED } from '../support/fault-policies.js';
import { alive, gone, type Member, type Rig } from '../support/fault-rig.js';
import { killAt, MOMENTS, STEPS, type TurnStep } from '../support/fault-steps.js';

export interface Fault {
  /** Shortest and longest time, ms. */
  ms: [number, number];
  /** Redis forgets by it: all, or what its replica had not got. */
  loses?: (rig: Rig['options']) => boolean;
  /** Where it makes sense. */
  when?: (rig: Rig['options']) => boolean;
  /** @param draw a number in [0, 1) of the schedule; @returns how it ends */
  begin(rig: Rig, draw: number, forMs: number): Promise<() => Promise<void>>;
}

const nothing = async () => {};
/** Under Sentinel processes find the server by themselves. */
const byProxy = ({ redis }: Rig['options']) => redis !== 'sentinel';
const pick = <T>(list: readonly T[], draw: number): T => list[Math.floor(draw * list.length)]!;

/** The daemon that leads the limiter that moves; if nobody does, one of those that live. */
async function leader(rig: Rig, draw: number): Promise<Member> {
  const lease = await rig
    .redis()
    .get(limiterKeys({ name: MOVED }).lease)
    .catch(() => null);
  const found = rig.daemons.find(({ child }) => lease?.split(':')[1] === String(child?.pid));
  return found ?? pick(rig.daemons.filter(alive), draw) ?? rig.daemons[0]!;
}

function lead(act: (rig: Rig, who: Member, forMs: number) => () => Promise<void> | void) {
  return async (rig: Rig, draw: number, forMs: number) => {
    const end = act(rig, await leader(rig, draw), forMs);
    return async () => void (await end());
  };
}

/** Between some processes and Redis nothing passes, or all is refused. */
function cutOff(who: (rig: Rig) => readonly Member[]): Fault {
  return {
    ms: [300, 1500],
    when: byProxy,
    async begin(rig, draw) {
      const cut = who(rig);
      for (const { proxy } of cut) {
        proxy.mode = draw < 0.5 ? 'hang' : 'refuse';
        if (draw >= 0.5) proxy.cut();
      }
      return async () => {
        for (const { proxy } of cut) {
          proxy.mode = 'pass';
          // What hung in it was thrown away: the connections are no more.
          proxy.cut();
        }
      };
    },
  };
}

function setting(name: string, bad: string, good: string): Fault['begin'] {
  return async (rig) => {
    await rig.redis().config('SET', name, bad);
    return async () => void (await rig.redis().config('SET', name, good));
  };
}

function person(planner: (draw: number, forMs: number) => Planner): Fault['begin'] {
  return async (rig, draw, forMs) => {
    await applyVerb(rig.redis(), { name: MOVED }, planner(draw, forMs), {
      ...{ actor: 'kim@test (unverified)', dryRun: false, nowMs: () => Date.now() },
      approve: async () => true,
    }).catch(() => null);
    return nothing;
  };
}

function pageGoes(mode: Rig['page']['mode']): Fault {
  return {
    ms: [500, 2000],
    async begin(rig) {
      rig.page.mode = mode;
      return async () => {
        rig.page.mode = 'well';
      };
    },
  };
}

async function killed(member: Member): Promise<void> {
  const { child } = member;
  child?.kill('SIGKILL');
  if (child) await gone(child);
}

/** Of Redis and the ways to it: one at a time. */
export const REDIS_FAULTS: Record<string, Fault> = {
  'redis killed': {
    ms: [200, 800],
    when: ({ redis }) => redis === 'plain' || redis === 'kept',
    loses: ({ redis }) => redis === 'plain',
    async begin(rig) {
      await rig.master.kill();
      return () => rig.master.restart();
    },
  },
  'redis frozen': {
    ms: [300, 1500],
    when: byProxy,
    async begin(rig) {
      rig.master.pause();
      return async () => rig.master.resume();
    },
  },
  'redis full': { ms: [300, 1500], begin: setting('maxmemory', '1', '0') },
  'redis cannot save': {
    ms: [300, 1500],
    when: ({ redis }) => redis === 'plain',
    async begin(rig) {
      const file = join(rig.master.dir, 'dump.rdb');
      rmSync(file, { force: true });
      // A folder with something in it, where the file should be: saving fails, and so does then every write.
      mkdirSync(join(file, 'in the way'), { recursive: true });
      await rig.redis().config('SET', 'save', '3600 1000000');
      await rig.redis().bgsave();
      return async () => {
        rmSync(file, { recursive: true });
        await rig.redis().config('SET', 'save', '');
      };
    },
  },
  'redis slow by 50 ms': {
    ms: [500, 2000],
    when: byProxy,
    async begin(rig) {
      const all = [...rig.daemons, ...rig.services];
      for (const { proxy } of all) proxy.delayMs = 25;
      return async () => {
        for (const { proxy } of all) proxy.delayMs = 0;
      };
    },
  },
  'scripts flushed': {
    ms: [50, 100],
    async begin(rig) {
      await rig.redis().script('FLUSH');
      return nothing;
    },
  },
  'all flushed': {
    ms: [50, 100],
    loses: () => true,
    async begin(rig) {
      await rig.redis().flushall();
      return nothing;
    },
  },
  'failover to a replica that lags': {
    ms: [200, 600],
    when: ({ redis }) => redis === 'pair',
    loses: () => true,
    async begin(rig, _draw, forMs) {
      const { master, replica } = rig;
      if (replica === null) return nothing;
      // The replica gets nothing more, and Redis goes on for a while.
      await rig.redis().call('ACL', 'SETUSER', 'default', '-psync', '-sync');
      await rig.redis().call('CLIENT', 'KILL', 'TYPE', 'replica');
      await new Promise((ok) => setTimeout(ok, forMs / 2));
      await master.kill();
      return async () => {
        rig.replica = null;
        const admin = replica.client({ maxRetriesPerRequest: 3 });
        await admin.call('REPLICAOF', 'NO', 'ONE');
        rig.leadTo(replica);
      };
    },
  },
  'master killed, Sentinel elects': {
    ms: [1500, 2500],
    when: ({ redis }) => redis === 'sentinel',
    loses: () => true,
    async begin(rig) {
      const { master, sentinel } = rig;
      if (sentinel === null) return nothing;
      await master.kill();
      return async () => {
        const next = await sentinel.failedOver(master);
        rig.leadTo(next);
        // An empty master that comes back serves too until Sentinel has made it a replica: no limiter could be right.
        await master.restart(['--replicaof', '127.0.0.1', String(next.port)]);
      };
    },
  },
  'daemons cut off': cutOff((rig) => rig.daemons),
  'services cut off': cutOff((rig) => rig.services),
  'half of the services cut off': cutOff((rig) =>
    rig.services.slice(0, Math.ceil(rig.services.length / 2)),
  ),
};

/** Of everything else: beside those of Redis. */
export const OTHER_FAULTS: Record<string, Fault> = {
  'leader killed': {
    ms: [300, 1500],
    async begin(rig, draw) {
      const who = await leader(rig, draw);
      await killed(who);
      return async () => rig.startDaemon(who);
    },
  },
  'leader killed in a turn': {
    ms: [1500, 2500],
    when: byProxy,
    async begin(rig, draw, forMs) {
      const who = await leader(rig, draw);
      const steps = Object.keys(STEPS) as TurnStep[];
      const step = pick(steps, draw);
      const moment = pick(MOMENTS, (draw * steps.length) % 1);
      // What does not come by itself within the time (a law with nothing to write) is killed in between.
      if (!(await killAt(who, step, moment, forMs / 2))) await killed(who);
      return async () => rig.startDaemon(who);
    },
  },
  'leader asleep for two leases': {
    ms: [1000, 1200],
    begin: lead((_rig, { child }) => {
      child?.kill('SIGSTOP');
      return () => void child?.kill('SIGCONT');
    }),
  },
  'leader blocked': {
    ms: [300, 1200],
    begin: lead((rig, who, forMs) => {
      rig.order(who, { blockMs: forMs });
      return nothing;
    }),
  },
  "leader's clock an hour ahead": clock(3_600_000),
  "leader's clock an hour behind": clock(-3_600_000),
  "leader's log on a full disk": {
    ms: [800, 1800],
    async begin(rig, draw) {
      const who = await leader(rig, draw);
      await killed(who);
      rig.startDaemon(who, 'full');
      return async () => {
        await killed(who);
        rig.startDaemon(who);
      };
    },
  },
  'signal dead': pageGoes('dead'),
  'signal slow': pageGoes('slow'),
  'signal lying': pageGoes('lying'),
  'policy broken': {
    ms: [500, 1500],
    begin: lead((rig, who) => {
      const file = rig.policyFile(who);
      const whole = readFileSync(file, 'utf8');
      writeFileSync(file, `${whole.slice(0, whole.length - 20)} rate: 'much'`);
      return () => writeFileSync(file, whole);
    }),
  },
  'service killed': {
    ms: [300, 1200],
    async begin(rig, draw) {
      const who = pick(rig.services, draw);
      await killed(who);
      return async () => rig.startService(who);
    },
  },
  'service asleep': {
    ms: [300, 1200],
    async begin(rig, draw) {
      const { child } = pick(rig.services, draw);
      child?.kill('SIGSTOP');
      return async () => void child?.kill('SIGCONT');
    },
  },
  'upstream fails': {
    ms: [2800, 3400],
    async begin(rig) {
      rig.work({ failing: true });
      return async () => rig.work({ failing: false });
    },
  },
  'upstream slow': {
    ms: [800, 1800],
    async begin(rig) {
      rig.work({ latencyMs: 300 });
      return async () => rig.work({ latencyMs: 15 });
    },
  },
  'a person pins': {
    ms: [500, 1500],
    begin: person((draw, forMs) => pin({ rate: 15 + Math.round(draw * 60) }, forMs)),
  },
  'a person freezes': {
    ms: [500, 1500],
    begin: person((_draw, forMs) => freeze(forMs)),
  },
};

function clock(shiftMs: number): Fault {
  return {
    ms: [500, 1500],
    begin: lead((rig, who) => {
      rig.order(who, { shiftMs });
      return () => rig.order(who, { shiftMs: 0 });
    }),
  };
}
