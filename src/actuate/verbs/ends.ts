/** Which command ends what a person's verb put in force, and what that does: the one place that says so. Pure. Stage: actuate. */

/** What stands until a command ends it, or its time is over. */
export type Endable = 'pinned' | 'frozen' | 'open' | 'bounds' | 'mode' | 'rollout';

const ENDS: Record<Endable, { verb: string; flag?: string; does: string }> = {
  pinned: { verb: 'release', does: 'hands it back to the autopilot' },
  frozen: { verb: 'thaw', does: 'ends the freeze' },
  open: { verb: 'reset', does: 'closes the breaker' },
  bounds: { verb: 'bounds', flag: '--clear', does: 'ends these bounds' },
  mode: { verb: 'promote', flag: '--release', does: "goes back to the policy's own mode" },
  rollout: { verb: 'rollout', flag: '--release', does: 'gives it back to the policy' },
};

/** By the reason code of the entry that began it. */
const BEGUN_BY: Record<string, Endable> = {
  pin: 'pinned',
  rollback: 'pinned',
  freeze: 'frozen',
  trip: 'open',
  bounds_set: 'bounds',
  promote: 'mode',
  rollout: 'rollout',
};

/** `flyball thaw checkout`, as a person can paste it. */
export function endCommand(what: Endable, limiter: string): string {
  const { verb, flag } = ENDS[what];
  return `flyball ${verb} ${limiter}${flag === undefined ? '' : ` ${flag}`}`;
}

/** The command, and what it does in a few words. */
export function endOf(what: Endable, limiter: string): { command: string; does: string } {
  return { command: endCommand(what, limiter), does: ENDS[what].does };
}

/** What an entry with that reason code began; null: nothing that a command ends. */
export function begunBy(reason: string): Endable | null {
  return Object.hasOwn(BEGUN_BY, reason) ? BEGUN_BY[reason]! : null;
}
