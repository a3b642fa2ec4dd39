/** What each verb asks for, says of itself, and how it is undone. Pure. Stage: dashboard. */
import type { Verb, VerbRequest } from '../../api/types.js';

export interface VerbSpec {
  title: string;
  /** On the button that writes. */
  does: string;
  /** What it is for, in a sentence. */
  about: string;
  undo: string;
  /** It lasts for a time that a person chooses. */
  holds: boolean;
  /** It may keep the breaker from acting too. */
  holdsBreaker?: boolean;
  dangerous?: boolean;
}

export const VERBS: Record<Verb, VerbSpec> = {
  rollback: {
    title: 'Roll back',
    does: 'Roll back',
    about:
      'Puts the numbers of an earlier revision in force again, as a new revision, and holds them.',
    undo: 'Release gives the numbers back to the autopilot; a rollback to the revision before this one takes it back.',
    holds: true,
  },
  pin: {
    title: 'Pin',
    does: 'Pin',
    about:
      'Holds a rate or a cap of yours. The autopilot leaves it alone until it lapses or is released.',
    undo: 'Release ends it at any time; it lapses by itself.',
    holds: true,
    holdsBreaker: true,
  },
  release: {
    title: 'Release',
    does: 'Release',
    about: 'Ends a pin or a rollback: the autopilot goes on from the values that stand now.',
    undo: 'Pin again, or roll back to the revision that stands now.',
    holds: false,
  },
  freeze: {
    title: 'Freeze',
    does: 'Freeze',
    about:
      'Nothing is changed by law, tuning or schedule until it lapses or is thawed. The breaker still acts.',
    undo: 'Thaw ends it at any time; it lapses by itself.',
    holds: true,
    holdsBreaker: true,
  },
  thaw: {
    title: 'Thaw',
    does: 'Thaw',
    about: 'Ends the freeze: the autopilot goes on from the values that stand now.',
    undo: 'Freeze again.',
    holds: false,
  },
  bounds: {
    title: 'Bounds for a while',
    does: 'Set the bounds',
    about:
      "Lets the autopilot move the limits farther than the policy allows, or less far. When the time is over the policy's own bounds hold again.",
    undo: 'End them here at any time; they end by themselves.',
    holds: true,
  },
  trip: {
    title: 'Trip the breaker',
    does: 'Deny everything',
    about: 'Opens the breaker by hand: every request is denied at once.',
    undo: 'Reset closes it; else it half-opens by itself when the time is over.',
    holds: true,
    dangerous: true,
  },
  reset: {
    title: 'Reset the breaker',
    does: 'Reset',
    about: 'Closes the breaker: the stored limits are in force again at once.',
    undo: 'Trip opens it again.',
    holds: false,
  },
  promote: {
    title: 'Promote',
    does: 'Change the mode',
    about:
      'Moves it up the ladder of trust (shadow, recommend, auto) on evidence, or down without.',
    undo: 'Promote to the mode before, or to what the policy file says.',
    holds: false,
  },
  approve: {
    title: 'Approve what is recommended',
    does: 'Approve',
    about: 'Puts the newest recommendation of the law in force, once.',
    undo: 'Roll back to the revision that stands now.',
    holds: false,
  },
};

/** Bounds are set and ended in one dialog. */
export function specOf(verb: Verb, { clear }: Pick<Draft, 'clear'>): VerbSpec {
  if (verb !== 'bounds' || !clear) return VERBS[verb];
  return { ...VERBS.bounds, does: 'End the bounds', undo: 'Set them again.' };
}

/** How long a hold lasts; null: until a person ends it, undefined: as the policy says. */
export interface HoldChoice {
  title: string;
  forMs: number | null | undefined;
}

const MINUTE = 60_000;
const TIMES: readonly HoldChoice[] = [
  { title: '15 minutes', forMs: 15 * MINUTE },
  { title: '1 hour', forMs: 60 * MINUTE },
  { title: '4 hours', forMs: 240 * MINUTE },
  { title: '24 hours', forMs: 1440 * MINUTE },
  { title: 'until a person ends it', forMs: null },
];

export function holdChoices(verb: Verb): readonly HoldChoice[] {
  // What should last belongs in the policy.
  if (verb === 'bounds') return TIMES.filter(({ forMs }) => forMs !== null);
  if (verb !== 'trip') return TIMES;
  return [
    { title: "the policy's open time", forMs: undefined },
    { title: '1 minute', forMs: MINUTE },
    ...TIMES,
  ];
}

/** What stands first: an hour, or of a trip the policy's own time. */
export function usualHold(verb: Verb): number {
  return verb === 'trip' ? 0 : 1;
}

const BOUNDS_ENDS = ['rateMin', 'rateMax', 'inFlightMin', 'inFlightMax'] as const;
export type BoundsEnd = (typeof BOUNDS_ENDS)[number];
export const NO_ENDS: Draft['ends'] = {
  rateMin: '',
  rateMax: '',
  inFlightMin: '',
  inFlightMax: '',
};

export interface Draft {
  hold: number;
  holdBreaker: boolean;
  rate: string;
  inFlight: string;
  /** Of bounds: what is left empty stays as the policy says. */
  ends: Record<BoundsEnd, string>;
  clear: boolean;
  /** `epoch.revision` */
  to: string;
  reason: string;
  mode: Mode;
  anyway: boolean;
}

/** Where a promotion leads; `file`: what the policy says. */
export type Mode = NonNullable<VerbRequest['mode']>;
export const MODES: readonly Mode[] = ['shadow', 'recommend', 'auto', 'file'];

/** The request of what was filled in; a string says what is missing or wrong. */
export function requestOf(verb: Verb, draft: Draft): VerbRequest | string {
  const request: VerbRequest = {};
  const spec = VERBS[verb];
  if (spec.holds) {
    const { forMs } = holdChoices(verb)[draft.hold]!;
    if (forMs === null) request.hold = true;
    else if (forMs !== undefined) request.forMs = forMs;
  }
  if (spec.holdsBreaker && draft.holdBreaker) request.holdBreaker = true;
  if (draft.reason.trim() !== '') request.reason = draft.reason.trim();
  if (verb === 'promote') {
    request.mode = draft.mode;
    if (draft.anyway) request.anyway = true;
    if (draft.anyway && request.reason === undefined)
      return 'Without enough evidence a reason is needed.';
  }
  if (verb === 'rollback') {
    const [epoch, revision] = draft.to.split('.').map(Number);
    if (epoch === undefined || revision === undefined) return 'Choose the revision to go back to.';
    Object.assign(request, { toEpoch: epoch, toRevision: revision });
  }
  if (verb === 'bounds' && draft.clear) {
    delete request.forMs;
    request.clear = true;
  } else if (verb === 'bounds') {
    for (const name of BOUNDS_ENDS) {
      const text = draft.ends[name].trim();
      if (text === '') continue;
      const value = Number(text);
      if (!Number.isFinite(value) || value <= 0) return `${text} is no number above 0.`;
      request[name] = value;
    }
    if (BOUNDS_ENDS.every((name) => request[name] === undefined))
      return 'Give at least one bound; what is left empty stays.';
  }
  if (verb === 'pin') {
    const numbers = [
      ['rate', draft.rate],
      ['inFlight', draft.inFlight],
    ] as const;
    for (const [name, text] of numbers) {
      if (text.trim() === '') continue;
      const value = Number(text);
      if (!Number.isFinite(value) || value < 0) return `${text} is no number of 0 or more.`;
      request[name] = value;
    }
    if (request.rate === undefined && request.inFlight === undefined)
      return 'Give a rate, a cap, or both.';
  }
  return request;
}
