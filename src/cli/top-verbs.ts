/** A verb of the live table: what it still has to ask, its preview, the question, and what came of it in a line. Stage: cli. */
import { applyVerb } from '../actuate/verbs/apply.js';
import { reset, trip } from '../actuate/verbs/breaker.js';
import { freeze, thaw } from '../actuate/verbs/freeze.js';
import { pin, release } from '../actuate/verbs/pin.js';
import { DEFAULT_HOLD_MS, type Planner } from '../actuate/verbs/plan.js';
import { rollback } from '../actuate/verbs/rollback.js';
import type { LimiterAddress } from '../redis/keys.js';
import { rollbackTarget } from '../view/rollback-target.js';
import type { StatusView } from '../view/status.js';
import { actorName } from './change.js';
import type { Colours } from './output.js';
import { preview } from './preview.js';
import type { Session } from './session.js';
import type { Wish } from './top-model.js';

/** Asks on the screen; null: escaped. */
export type Ask = (label: string, lines?: readonly string[]) => Promise<string | null>;

export type Verb = Exclude<Wish, 'quit' | 'redraw' | 'stop'>;

/** Resolves to what to tell; rejects with what Redis or the verb refused. */
export async function carryOut(
  verb: Verb,
  view: StatusView,
  deps: { session: Session; address: LimiterAddress; ask: Ask; plain: Colours },
): Promise<string> {
  const { session, address, ask, plain } = deps;
  const planner = await plannerOf(verb, view, session, address, ask);
  if (typeof planner === 'string') return planner;
  const reason = await ask(`Reason, for the audit log (enter: none; escape: leave it):`);
  if (reason === null) return 'Nothing was changed.';
  const outcome = await applyVerb(session.redis, address, planner, {
    ...{ actor: actorName(), dryRun: false, nowMs: Date.now },
    reason: reason.trim() === '' ? undefined : reason.trim(),
    async approve(plan, facts) {
      const lines = preview(plain, plan, facts).split('\n');
      return /^y(es)?$/i.test((await ask('Do it? [y/N]', lines)) ?? '');
    },
  });
  if (outcome.status === 'nothing') return outcome.sentence;
  if (outcome.status !== 'done') return 'Nothing was changed.';
  return `done  revision ${outcome.revision}  ${outcome.plan.sentence}`;
}

async function plannerOf(
  verb: Verb,
  view: StatusView,
  session: Session,
  address: LimiterAddress,
  ask: Ask,
): Promise<Planner | string> {
  const held = (kind: string) => view.holds.some((hold) => hold.kind === kind);
  switch (verb) {
    case 'freeze':
      return held('frozen') ? thaw() : freeze(DEFAULT_HOLD_MS);
    case 'release':
      return release();
    case 'trip':
      return view.state === 'open' || view.state === 'half-open' ? reset() : trip();
    case 'pin': {
      const rate = await ask(`Pin ${view.limiter} at how many per second (enter: as it is)?`);
      if (rate === null) return 'Nothing was changed.';
      const cap = await ask('With how many in flight at most (enter: as it is)?');
      if (cap === null) return 'Nothing was changed.';
      const values = { rate: numberOf(rate), inFlight: numberOf(cap) };
      if (Number.isNaN(values.rate) || Number.isNaN(values.inFlight)) {
        return `${JSON.stringify(Number.isNaN(values.rate) ? rate : cap)} is no number ≥ 0. Nothing was changed.`;
      }
      if (values.rate === undefined && values.inFlight === undefined) {
        return 'Neither was given: freeze (f) holds what is in force.';
      }
      return pin(
        {
          ...(values.rate === undefined ? {} : { rate: values.rate }),
          ...(values.inFlight === undefined ? {} : { inFlight: values.inFlight }),
        },
        DEFAULT_HOLD_MS,
      );
    }
    case 'rollback': {
      const now = view.revision ?? 0;
      const text = await ask(
        `Roll ${view.limiter} back to which revision (now ${now}; enter: ${now - 1})?`,
      );
      if (text === null) return 'Nothing was changed.';
      const revision = text.trim() === '' ? now - 1 : Number(text.trim().replace(/^[r#]/, ''));
      if (!(Number.isInteger(revision) && revision >= 1)) {
        return `${JSON.stringify(text)} is no revision: flyball audit ${view.limiter} shows them.`;
      }
      const target = await rollbackTarget(session.redis, address, { to: 'revision', revision });
      return rollback(target, DEFAULT_HOLD_MS);
    }
  }
}

/** undefined: nothing was typed. NaN: no number. */
function numberOf(text: string): number | undefined {
  const word = text.trim();
  if (word === '') return undefined;
  return /^\d+(\.\d+)?$/.test(word) ? Number(word) : Number.NaN;
}
