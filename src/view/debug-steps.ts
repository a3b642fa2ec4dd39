/** The steps of a decision in the order in which to look, each with its numbers; and the answer in one sentence. Pure. Stage: cli, api. */
import { encodeSubject } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { isPartial, parseRollout, ROLLOUT_PARTS, rolloutWords } from '../redis/rollout.js';
import { parseServiceTerms } from '../redis/service-terms.js';
import { inForceAt } from '../redis/subject-override.js';
import { crowdTerms } from '../redis/subject-terms.js';
import type {
  DebugAnswer,
  DebugFacts,
  DebugQuery,
  DebugStep,
  DebugStepName,
  DebugVerdict,
} from './debug-types.js';
import { tierOf, tiersOf } from './subject-tiers.js';
import { clean, number, span } from './text.js';

type Step = { verdict: DebugVerdict; sentence: string } | null;

const ok = (sentence: string): Step => ({ verdict: 'ok', sentence });
const look = (sentence: string): Step => ({ verdict: 'look', sentence });

export function stepsOf(facts: DebugFacts): DebugStep[] {
  const told: [DebugStepName, Step][] = [
    ['params', paramsStep(facts)],
    ['route', routeStep(facts)],
    ['subject', subjectStep(facts)],
    ['rollout', rolloutStep(facts)],
    ['override', overrideStep(facts)],
    ['tier', tierStep(facts)],
    ['breaker', breakerStep(facts)],
    ['cost', costStep(facts)],
    ['total', totalStep(facts)],
    ['own_bucket', ownStep(facts)],
    ['fair_share', fairStep(facts)],
    ['in_flight', inFlightStep(facts)],
    ['service', serviceStep(facts)],
  ];
  return told.flatMap(([step, said]) => (said === null ? [] : [{ step, ...said }]));
}

export function unmanagedSteps(limiter: string): DebugStep[] {
  const sentence = `${limiter} has no params in Redis: each service decides by the numbers in its own code. \`flyball run\` adopts its policy and creates them.`;
  return [{ step: 'params', verdict: 'look', sentence }];
}

/** Tokens that must remain after a take of that priority, as a share of the capacity. */
export function reserveOf(params: Params, priority: DebugQuery['priority']): number {
  if (priority === 'critical') return 0;
  return priority === 'sheddable' ? params.reserveSheddable : params.reserveDefault;
}

/** `denied by subject; again in 1 s`, `admitted, 41 tokens left`. */
export function answerSentence(
  answer: Omit<DebugAnswer, 'sentence'>,
  { shadow, byChance }: Pick<DebugFacts, 'shadow' | 'byChance'>,
): string {
  const { allowed, reason, remaining, retryAfterMs, delayMs, enforced } = answer;
  const when =
    retryAfterMs === null ? 'waiting does not help by itself' : `again in ${span(retryAfterMs)}`;
  const wait = delayMs ? `, after ${span(delayMs)}` : '';
  const said = allowed
    ? `admitted${reason === 'ok' ? '' : ` (${reason})`}${wait}, ${number(remaining)} tokens left`
    : `denied by ${reason}, ${when}`;
  if (!enforced) {
    const why = shadow === 'mode' ? 'mode shadow' : 'the rollout has not reached it';
    return `admitted, since ${why}; enforced it would be ${said}`;
  }
  return byChance ? `${said}; in those requests that the rollout reaches` : said;
}

function paramsStep({ params, now }: DebugFacts): Step {
  const { mode, revision } = params;
  const where = `revision ${revision}, mode ${mode}`;
  if (mode === 'off') return { verdict: 'admits', sentence: `${where}: every take is admitted` };
  const numbers = `${number(now.rate)}/s, capacity ${number(now.capacity)}`;
  if (now.gliding) {
    return look(`${where}, ${numbers}: no autopilot writes, so the limits go to their safe values`);
  }
  return mode === 'shadow'
    ? look(`${where}, ${numbers}: nothing is denied, answers are only counted`)
    : ok(`${where}, ${numbers}`);
}

function routeStep({ route, limiter, query, params }: DebugFacts): Step {
  const { routes } = parseServiceTerms(params.terms);
  if (route === undefined) {
    if (!Array.isArray(routes) || routes.length === 0) return null;
    const shown = routes.slice(0, 3).map(String).join(', ');
    return ok(
      `requests come by ${shown}${routes.length > 3 ? ', …' : ''}; give one to see where it falls`,
    );
  }
  const asked = `${query.request!.method} ${query.request!.path}`;
  if (route === null) return look(`${asked} falls under no route of any limiter`);
  return route.limiter === limiter
    ? ok(`${asked} falls under ${route.route} of this limiter`)
    : look(`${asked} falls under ${route.route} of ${route.limiter}, not of this limiter`);
}

/** A subject is compared byte by byte: one that is named otherwise than the service does has another bucket. */
function subjectStep({ params, query, keptMs }: DebugFacts): Step {
  const { subject } = query;
  const template = params.subject;
  const hashed = encodeSubject(subject).startsWith('#') ? ', kept under a hash' : '';
  const kept =
    keptMs === null
      ? 'it has no key: nothing was taken of late, or never'
      : `its key is kept for ${span(keptMs)}`;
  if (template !== '' && !shapeOf(template).test(subject)) {
    return look(`the policy names subjects ${template}, and this one looks otherwise; ${kept}`);
  }
  return ok(`${kept}${hashed}`);
}

function shapeOf(template: string): RegExp {
  const parts = template
    .split(/\{[^}]*\}/)
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('.+')}$`, 's');
}

function rolloutStep({ params, shadow, byChance, part, query }: DebugFacts): Step {
  const rollout = parseRollout(params.rollout);
  if (!isPartial(rollout) || params.mode === 'shadow' || params.mode === 'off') return null;
  const whom = `enforced for ${rolloutWords(rollout)}`;
  if (rollout.subjects?.includes(query.subject)) return ok(`${whom}: this one is named`);
  if (byChance) return look(`${whom}: by chance, so one request is enforced and the next is not`);
  const place = `its place is ${part} of ${ROLLOUT_PARTS}, those below ${Math.round(rollout.percent * 100)} are reached`;
  return shadow === 'rollout'
    ? { verdict: 'admits', sentence: `${whom}: this one is in shadow (${place})` }
    : ok(`${whom}: this one is reached (${place})`);
}

function overrideStep({ override, params, nowMs }: DebugFacts): Step {
  if (override === null)
    return params.subjectRules === 1 ? ok('nobody has said anything of it') : null;
  const { kind, untilMs, rate, capacity, by, why, revision } = override;
  const numbers = [
    ...(rate === null ? [] : [`${number(rate)}/s`]),
    ...(capacity === null ? [] : [`capacity ${number(capacity)}`]),
  ].join(', ');
  const words = why === '' ? '' : ` (${why})`;
  const ends = untilMs === -1 ? 'until a person ends it' : `for ${span(untilMs - nowMs)} more`;
  const said = `${kind}${numbers && ` ${numbers}`} by ${by || 'somebody'}${words} in revision ${revision}`;
  if (!inForceAt(override, nowMs)) return ok(`${said}: it is over`);
  const verdict = { block: 'denies', exempt: 'admits', limit: 'look' } as const;
  return { verdict: verdict[kind], sentence: `${said}, ${ends}` };
}

function tierStep({ params, streak }: DebugFacts): Step {
  const tiers = tiersOf(params.subjectTerms);
  if (tiers.length === 0) return null;
  const row = `${streak ?? 0} good outcomes in a row`;
  const { tier, next } = tierOf(tiers, streak);
  const more = next === null ? 'the highest' : `the next at ${next.times}`;
  if (tier === null) return ok(`${row}: no tier yet, ${more}`);
  const { rate, capacity } = tier;
  const numbers = `${rate === null ? '' : `${number(rate)}/s `}${capacity === null ? '' : `capacity ${number(capacity)}`}`;
  return ok(`${row}: tier from ${tier.times} (${numbers.trim()}), ${more}`);
}

function breakerStep({ now, params, nowMs, shadow }: DebugFacts): Step {
  if (now.state === 'closed') return ok('closed');
  if (now.state === 'open') {
    const left =
      params.openUntil === -1
        ? 'until a person ends it'
        : `for ${span(params.openUntil - nowMs)} more`;
    return {
      verdict: shadow === null ? 'denies' : 'look',
      sentence: `open ${left}: all is denied`,
    };
  }
  if (now.state === 'half-open') return look(`half-open: probes pass, ${number(now.rate)}/s`);
  return look(`recovering: the limits come back step by step, now ${number(now.rate)}/s`);
}

function costStep({ query, now, answer }: DebugFacts): Step {
  if (answer.reason !== 'cost_exceeds_capacity' && answer.reason !== 'bad_cost') return null;
  const cost = `a take of ${number(query.cost)}`;
  const sentence =
    answer.reason === 'bad_cost'
      ? `${cost} is no cost: plain decimals above 0, at most 6 of them`
      : `${cost} is above what a bucket ever holds (total ${number(now.capacity)}, a subject's ${number(now.subjectCapacity)})`;
  return { verdict: 'denies', sentence };
}

function totalStep({ now, leftTotal, query, params, answer }: DebugFacts): Step {
  const left = leftTotal === null ? 'not known' : number(leftTotal);
  const share = reserveOf(params, query.priority);
  const kept =
    share > 0 ? `; ${number(share * now.capacity)} are kept from priority ${query.priority}` : '';
  const sentence = `${left} tokens left of ${number(now.capacity)}, ${number(now.rate)}/s${kept}`;
  const denies =
    answer.reason === 'rate' || answer.reason === 'reserve' || answer.reason === 'probe_budget';
  return { verdict: denies ? 'denies' : 'ok', sentence };
}

function ownStep({ now, leftTotal, leftBoth, override, params, crowd, answer }: DebugFacts): Step {
  const own = now.subjectRate >= 0;
  if (!own && override?.kind !== 'limit' && tiersOf(params.subjectTerms).length === 0) {
    return ok('none: this policy gives subjects no bucket of their own');
  }
  const numbers = own
    ? `, ${number(now.subjectRate)}/s to ${number(now.subjectCapacity)} by the policy${params.subjectFollow === 1 ? ', which follows the total' : ''}`
    : '';
  const tighter = leftBoth !== null && leftTotal !== null && leftBoth < leftTotal;
  const left =
    leftBoth === null ? 'not known' : tighter ? number(leftBoth) : `at least ${number(leftBoth)}`;
  const full = crowd !== null && crowd.live >= crowd.most && !crowd.isLive;
  const shared =
    answer.shared || full
      ? `; ${number(crowd?.live ?? 0)} subjects live, the most is ${number(crowd?.most ?? 0)}: newcomers share one bucket`
      : '';
  const sentence = `${left} tokens left${numbers}${shared}`;
  if (answer.reason === 'subject') return { verdict: 'denies', sentence };
  return shared === '' ? ok(sentence) : look(sentence);
}

function fairStep({ params, answer }: DebugFacts): Step {
  if (!crowdTerms(params.subjectTerms).fair) return null;
  return answer.reason === 'fair_share'
    ? { verdict: 'denies', sentence: 'above its fair share, while the total denies others' }
    : ok('within its fair share, or nobody is denied');
}

/** Requests under way are counted where they run: nothing here can say what a process would answer. */
function inFlightStep({ now, underWay }: DebugFacts): Step {
  if (now.inFlightMax === 0) return null;
  const { shares, reporting } = underWay;
  const who = `${shares} ${shares === 1 ? 'process has' : 'processes have'} a share`;
  const sentence = `cap ${number(now.inFlightMax)} over the fleet, ${who}, ${reporting} of them ${reporting === 1 ? 'reports' : 'report'} completions; a process beyond its share denies by itself (in_flight)`;
  return shares > 0 && reporting < shares ? look(sentence) : ok(sentence);
}

function serviceStep({ params }: DebugFacts): Step {
  const { draw, count } = parseServiceTerms(params.terms);
  const says = [
    ...(params.algorithm === ''
      ? ['the algorithm is the service’s own choice, a token bucket is shown']
      : [`algorithm ${params.algorithm}`]),
    ...(draw === 'block' ? ['tokens are drawn in blocks, up to 250 ms ahead'] : []),
    ...(count !== undefined && count !== 'all' ? [`only ${count} count in the end`] : []),
    `without Redis: ${params.onRedisError === '' ? 'the service’s own choice' : params.onRedisError}`,
  ];
  return ok(clean(says.join('; ')));
}
