/** After another Redis server took over: a new epoch, what was lost put back, and a lower rate for a while. Stage: daemon. */
import { clamp } from '../decide/bounds.js';
import type { InForceView } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { PARAM_FIELDS, type ParamChange, type Params } from '../redis/params.js';
import { isOlder } from '../redis/write-order.js';
import type { Repair } from './repairs.js';
import type { ServerIdentity, ServerWatch } from './server-watch.js';
import { heldBy } from './view.js';

/** What the next owner must know. Part of the checkpoint. */
export interface FailoverMemory {
  /** Run id of the server that this limiter's writes went to. */
  runId: string;
  /** The rate that was lowered: to what, from what, and until when (Redis ms). */
  lowered: { to: number; from: number; untilMs: number } | null;
}

const FAILOVER_FACTOR = 0.5;
const FAILOVER_FOR_MS = 30_000;

export interface FailoverStep {
  /** What is to be written; null: nothing. */
  repair: Repair | null;
  /** How things stand once it is written. */
  memory: FailoverMemory | null;
}

/**
 * One turn's look. `last` is the newest write that this daemon has seen: what lies before it was lost. Pure, but for
 * what the watch knows.
 */
export function failoverStep(of: {
  policy: Policy;
  params: Params;
  view: InForceView;
  nowMs: number;
  last: Params | null;
  server: ServerIdentity | null;
  servers: Pick<ServerWatch, 'serves'>;
  memory: FailoverMemory | null;
  /** Redis had lost the params, and they were created anew: with an epoch and floors of their own. */
  restored: boolean;
}): FailoverStep {
  const { policy, params, view, nowMs, last, server, servers, memory, restored } = of;
  const lost = last !== null && isOlder(params, last) ? last : null;
  const known = memory ?? (server === null ? null : { runId: server.runId, lowered: null });
  const other = server !== null && known !== null && server.runId !== known.runId;
  // A slot may move between servers that both live: nothing is lost then.
  const tookOver = other && !servers.serves(known.runId);
  if (lost === null && !tookOver) {
    const now = other ? { ...known, runId: server.runId } : known;
    return over(policy, params, view, nowMs, now);
  }
  const mended = lost === null ? {} : whatWasLost(params, lost);
  const state = mended.state ?? params.state;
  const held = lost === null ? view.held !== 'none' : heldBy(lost, nowMs) !== 'none';
  const from = mended.rate ?? params.rate;
  const { factor = FAILOVER_FACTOR, for: forMs = FAILOVER_FOR_MS } = policy.onFailover ?? {};
  const before = known?.lowered;
  // A second one within the time of the first begins the time anew, and lowers nothing again: servers that take over
  // from each other time and again must not starve the services.
  const within = before && nowMs < before.untilMs;
  const again = within && from === before.to;
  const base = within && from <= before.to ? before.from : from;
  const to = rounded(clamp(base * factor, Math.min(params.minRate, from), from));
  const lowers =
    params.mode === 'auto' && state === 'closed' && !held && (to < from || again === true);
  const { coldStart } = policy.limiter;
  const afterwards: FailoverMemory = {
    runId: server?.runId ?? known?.runId ?? '',
    lowered: lowers ? { to, from: base, untilMs: Math.floor(nowMs + forMs) } : null,
  };
  if (restored && !lowers) return { repair: null, memory: afterwards };
  return {
    repair: {
      change: { ...mended, ...(lowers && to < from ? { rate: to } : {}) },
      ...(restored ? {} : { newEpoch: Math.max((lost ?? params).epoch + 1, Math.floor(nowMs)) }),
      ...(restored || coldStart === 'full' ? {} : { refloor: coldStart }),
      cause: 'settle',
      reason: lost === null ? 'redis_failover' : 'writes_lost',
      sentence: [
        tookOver
          ? 'Another Redis server serves the limiter: a failover or a restart.'
          : 'Redis went back to an earlier revision.',
        ...(restored
          ? []
          : [
              lost === null ? 'No write is known to be lost.' : lostSentence(params, lost, mended),
              'A new epoch begins.',
            ]),
        ...(lowers ? [loweredSentence(from, to, forMs)] : []),
      ].join(' '),
      detail: {
        ...(tookOver ? { server: { from: known.runId, to: server.runId, ...lag(server) } } : {}),
        ...(lost === null ? {} : { lostEpoch: lost.epoch, lostRevision: lost.revision }),
        ...(lowers ? { lowered: afterwards.lowered } : {}),
      },
    },
    memory: afterwards,
  };
}

function loweredSentence(from: number, to: number, forMs: number): string {
  const time = `${forMs / 1000} s`;
  return to < from
    ? `Rate ${from}/s → ${to}/s for ${time}.`
    : `The rate was lowered a moment ago: ${from}/s stays for another ${time}.`;
}

/** The time is over: back up, unless the law or a person has moved the rate meanwhile. */
function over(
  policy: Policy,
  params: Params,
  view: InForceView,
  nowMs: number,
  memory: FailoverMemory | null,
): FailoverStep {
  const lowered = memory?.lowered;
  if (memory === null || !lowered || nowMs < lowered.untilMs) return { repair: null, memory };
  const done = { ...memory, lowered: null };
  const untouched =
    params.rate === lowered.to && view.held === 'none' && view.state === 'closed' && !view.gliding;
  const rate = Math.min(lowered.from, params.maxRate);
  if (!untouched || rate <= params.rate) return { repair: null, memory: done };
  const { factor = FAILOVER_FACTOR } = policy.onFailover ?? {};
  return {
    repair: {
      change: { rate },
      cause: 'settle',
      reason: 'failover_over',
      sentence: `The time after the failover is over: rate ${params.rate}/s → ${rate}/s, where it was before (it was × ${factor}).`,
    },
    memory: done,
  };
}

/** Every field that had been in force and is not; what a person did is among them. Trips are never counted back. */
function whatWasLost(params: Params, last: Params): ParamChange {
  const change: Record<string, string | number> = {};
  for (const field of PARAM_FIELDS) {
    if (!OWN.has(field) && params[field] !== last[field]) change[field] = last[field];
  }
  const generation = Math.max(params.generation, last.generation);
  if (generation !== params.generation) change.generation = generation;
  else delete change.generation;
  return change as ParamChange;
}

/** The script keeps these by itself. */
const OWN: ReadonlySet<string> = new Set([
  ...['v', 'epoch', 'revision', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor'],
  ...['validUntil', 'fence'],
]);

function lostSentence(params: Params, lost: Params, mended: ParamChange): string {
  const fields = Object.keys(mended);
  const back = fields.length === 0 ? 'nothing differs' : `put back: ${fields.join(', ')}`;
  return `It holds revision ${params.revision} of epoch ${params.epoch}, but revision ${lost.revision} of epoch ${lost.epoch} had been in force: writes were lost; ${back}.`;
}

/** Of a replica that was promoted: what of its master's history it had. */
function lag(server: ServerIdentity): Record<string, unknown> {
  const promoted = /[1-9a-f]/.test(server.replId2);
  return promoted ? { promotedAtOffset: server.secondOffset } : {};
}

function rounded(rate: number): number {
  return Number(rate.toPrecision(6));
}
