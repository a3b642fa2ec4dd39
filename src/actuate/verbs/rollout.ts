/** Rollout: for whom a limiter is enforced, step by step; the others are in shadow. Pure. Stage: actuate. */
import {
  isPartial,
  parseRollout,
  ROLLOUT_MAX_BYTES,
  type Rollout,
  rolloutText,
  rolloutWords,
} from '../../redis/rollout.js';
import { rolloutMark } from '../person-rollout.js';
import { type Facts, type Planner, standing } from './plan.js';
import { WishFault } from './wish-fault.js';

export interface RolloutWish {
  /** 0 … 100, at most two decimals. */
  percent?: number;
  /** Enforced by name, beside those that are already. */
  subjects?: readonly string[];
  /** No longer enforced by name. */
  drop?: readonly string[];
  by?: 'subject' | 'request';
  /** For all, whatever the policy's rollout says. */
  done?: boolean;
  /** What the policy says comes back. */
  release?: boolean;
}

const MOST_SUBJECTS = 100;

/** What is not named stays. A person's rollout stands until the policy's own becomes another. */
export function rollout(wish: RolloutWish): Planner {
  return (facts) => {
    const { params, limiter, actor, policy } = facts;
    const now = parseRollout(params.rollout);
    check(wish, now, limiter);
    if (wish.release && now?.over === undefined) {
      return { kind: 'nothing', sentence: `The rollout of ${limiter} is the policy's own.` };
    }
    const own = policy?.limiter.rollout as Rollout | undefined;
    const text = wish.release ? rolloutText(own) : personsText(wish, now, own);
    const then = parseRollout(text);
    if (sameBut(now, then)) {
      const how = `${limiter} is enforced for ${rolloutWords(now)} already.`;
      if (!wish.release) return { kind: 'nothing', sentence: how };
    }
    if (Buffer.byteLength(text, 'utf8') > ROLLOUT_MAX_BYTES) {
      throw new WishFault(
        (name) => `${name('subjects')} take more than ${ROLLOUT_MAX_BYTES} bytes. Name fewer.`,
      );
    }
    const { values, settled } = standing(facts);
    const change = `${rolloutWords(now)} → ${rolloutWords(then)}`;
    return {
      kind: 'change',
      reason: 'rollout',
      before: values,
      after: values,
      agreed: ['mode'],
      basis: params.rollout,
      change: { ...settled, rollout: text },
      sentence: wish.release
        ? `${actor} gave the rollout of ${limiter} back to its policy: ${change}.`
        : `${actor} set the rollout of ${limiter}: enforced for ${change}.`,
      detail: { rollout: { before: now, after: then } },
      notes: notesOf(now, then, facts),
    };
  };
}

function personsText(wish: RolloutWish, now: Rollout | null, own: Rollout | undefined): string {
  const over = rolloutMark(own);
  if (wish.done || wish.percent === 100) {
    // Without a rollout in the policy there is nothing to stand against.
    return own === undefined ? '' : rolloutText({ percent: 100, over });
  }
  const names = new Set([...(now?.subjects ?? []), ...(wish.subjects ?? [])]);
  for (const name of wish.drop ?? []) names.delete(name);
  const by = wish.by ?? now?.by;
  return rolloutText({
    percent: wish.percent ?? now?.percent ?? 100,
    subjects: [...names],
    ...(by && { by }),
    over,
  });
}

/** Who set it aside, do they say the same? */
function sameBut(a: Rollout | null, b: Rollout | null): boolean {
  const said = (one: Rollout | null) => {
    if (!isPartial(one)) return '';
    const { over: _, ...rest } = one;
    return rolloutText(rest);
  };
  return said(a) === said(b);
}

function notesOf(now: Rollout | null, then: Rollout | null, { params }: Facts): string[] {
  const notes: string[] = [];
  const { mode } = params;
  if (mode === 'shadow' || mode === 'off') {
    notes.push(`Mode ${mode} admits all: the rollout counts once the mode enforces.`);
  }
  if (!isPartial(then)) return notes;
  if (!isPartial(now)) {
    notes.push('So far it is enforced for all: the others are admitted from now on.');
  } else if (then.percent < now.percent) {
    notes.push('Lowered: some that are enforced now are admitted from now on.');
  }
  const total =
    params.inFlightMax > 0
      ? 'The total rate and the in-flight cap count and bind'
      : 'The total rate counts and binds';
  notes.push(
    `${total} only whom it is enforced for. The others have the shadow's buckets, and are all admitted.`,
  );
  if (mode === 'auto') {
    notes.push('Mode auto: the law sees what all requests do, and moves limits that bind a part.');
  }
  return notes;
}

function check(wish: RolloutWish, now: Rollout | null, limiter: string): void {
  const { percent, subjects = [], drop = [], by, done, release } = wish;
  const parts = percent !== undefined || subjects.length > 0 || drop.length > 0 || by !== undefined;
  if (Number(parts) + Number(done === true) + Number(release === true) !== 1) {
    throw new WishFault((name) => {
      const [first, ...others] = ['percent', 'subjects', 'drop', 'by'].map(name);
      return `give ${[first, ...others.slice(0, -1)].join(', ')} or ${others.at(-1)}; or ${name('done')} alone; or ${name('release')} alone.`;
    });
  }
  if (!parts) return;
  if (percent !== undefined) {
    const hundredths = percent * 100;
    const whole = Math.abs(hundredths - Math.round(hundredths)) < 1e-9;
    if (!(percent >= 0 && percent <= 100 && whole)) {
      throw new WishFault(
        (name) =>
          `${name('percent')} is ${percent}; 0 … 100 with at most two decimals are allowed.`,
      );
    }
  } else if (!isPartial(now)) {
    throw new WishFault(
      (name) =>
        `${limiter} is enforced for all: say the share of the others with ${name('percent')} (0 for none).`,
    );
  }
  for (const subject of [...subjects, ...drop]) {
    if (subject === '' || subject.length > 256) {
      const field = subjects.includes(subject) ? 'subjects' : 'drop';
      throw new WishFault(
        (name) => `${name(field)} has one of ${subject.length} characters; 1 … 256 are allowed.`,
      );
    }
  }
  if (new Set([...(now?.subjects ?? []), ...subjects]).size > MOST_SUBJECTS + drop.length) {
    throw new WishFault(
      (name) =>
        `${name('subjects')} make more than ${MOST_SUBJECTS} by name. Raise ${name('percent')} instead.`,
    );
  }
}
