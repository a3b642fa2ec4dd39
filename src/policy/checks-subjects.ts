/** Checks between what a policy says of subjects, their tiers, the most of them, and of blocks. Stage: policy. */
import { DEFAULT_RESET_ON } from '../redis/subject-terms.js';
import type { Draft, Report } from './draft.js';

const TIERS = 'limiter.perSubject.tiers';
type Limiter = NonNullable<Draft['limiter']>;
type Step = { times: number; capacity?: number | undefined; rate?: number | undefined };

/** Fair shares are owed by the subjects of a token bucket. */
function checkFair({ algorithm, perSubject }: Limiter, hasSubjects: boolean, report: Report): void {
  if (!hasSubjects && perSubject === undefined) {
    report(
      'limiter.fair',
      "shares between subjects, and no field says who they are. Give limiter.perSubject: { subject: 'user:{userId}', rate, capacity } (as large as the limiter's own, if they need no limit of their own), or leave fair out.",
    );
  }
  if (algorithm !== undefined && algorithm !== 'token-bucket') {
    report(
      'limiter.fair',
      `shares what a token bucket lacks, and algorithm is '${algorithm}'. Say 'token-bucket', or leave fair out.`,
    );
  }
}

export function checkSubjects({ limiter }: Draft, report: Report): void {
  if (limiter === undefined) return;
  if (limiter.subjects !== undefined && !('perSubject' in limiter)) {
    report(
      'limiter.subjects',
      'bounds subjects that have no bucket of their own. Give limiter.perSubject, or leave it out.',
    );
  }
  const tiers = limiter.perSubject?.tiers;
  checkDraw(limiter, report);
  if (limiter.fair) checkFair(limiter, 'perSubject' in limiter, report);
  if (tiers === undefined) return;
  const resets: readonly string[] = tiers.resetOn ?? DEFAULT_RESET_ON;
  if (tiers.on !== undefined && resets.includes(tiers.on)) {
    report(`${TIERS}.resetOn`, `names "${tiers.on}", which is what counts (on). Take it out.`);
  }
  if (limiter.algorithm === 'leaky-bucket') {
    report(
      TIERS,
      "have no meaning for a leaky bucket, which paces all alike. Use another algorithm: 'token-bucket'.",
    );
  } else {
    for (const [i, step] of (tiers.steps ?? []).entries()) {
      checkStep(limiter, step, tiers.steps?.[i - 1], `${TIERS}.steps.${i}`, report);
    }
  }
}

/** What makes each take ask Redis, so that no block would ever be drawn. */
function checkDraw({ draw, algorithm, subjects, perSubject, fair }: Limiter, report: Report): void {
  if (draw !== 'block') return;
  const against = [
    ...(algorithm === undefined || algorithm === 'token-bucket'
      ? []
      : [`algorithm '${algorithm}'`]),
    ...(perSubject?.tiers === undefined ? [] : [TIERS]),
    ...(subjects === undefined ? [] : ['limiter.subjects']),
    ...(fair ? ['limiter.fair'] : []),
  ];
  if (against.length === 0) return;
  report(
    'limiter.draw',
    `is 'block', but with ${against.join(' and ')} each take asks Redis. Say 'each', or leave out the other.`,
  );
}

function checkStep(
  { algorithm, perSubject = {} }: Limiter,
  step: Step,
  before: Step | undefined,
  field: string,
  report: Report,
): void {
  const windowed = algorithm !== undefined && algorithm !== 'token-bucket';
  if (before !== undefined && step.times <= before.times) {
    report(
      `${field}.times`,
      `is ${step.times}, but the step before it has ${before.times}. Order them.`,
    );
  }
  if (windowed && (step.capacity !== undefined || step.rate === undefined)) {
    report(
      field,
      `is for algorithm '${algorithm}', whose limit is rate × window: give rate, and no capacity.`,
    );
  } else if (step.capacity === undefined && step.rate === undefined) {
    report(field, 'changes nothing. Give capacity, rate or both.');
  }
  for (const name of ['capacity', 'rate'] as const) {
    const least = Math.max(perSubject[name] ?? 0, before?.[name] ?? 0);
    const value = step[name];
    if (value !== undefined && value < least) {
      report(
        `${field}.${name}`,
        `is ${value}, below the ${least} before it: a tier only raises. Give at least ${least}.`,
      );
    }
  }
}
