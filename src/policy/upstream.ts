/** `upstream()`: the breaker that several limiters share, and what of their policies does not agree. Stage: policy. */
import type { Policy, PolicyInput } from './schema.js';

type BreakerInput = Omit<NonNullable<PolicyInput['breaker']>, 'upstream'>;

/**
 * The breaker of an upstream that several limiters call, declared once and given to each of their policies:
 * `export const wechatPay = upstream('wechat-pay', { on: 'errors', above: '50%' })`, then `breaker: wechatPay`. When one of them
 * trips, all open, and they come back together.
 */
export function upstream<const B extends BreakerInput>(name: string, breaker: B) {
  return { ...breaker, upstream: name };
}

/** One sentence for each upstream whose policies do not give it the same way back. */
export function upstreamWarnings(policies: readonly Policy[]): string[] {
  const shared = new Map<string, Policy[]>();
  for (const policy of policies) {
    const name = policy.breaker?.upstream;
    if (name !== undefined) shared.set(name, [...(shared.get(name) ?? []), policy]);
  }
  return [...shared].flatMap(([name, members]) => {
    const ways = new Set(members.map(wayBack));
    const names = members.map(({ limiter }) => limiter.name).join(', ');
    if (ways.size <= 1) return [];
    return `upstream ${name}: the policies of ${names} do not agree on openFor, openForMax, successes or probeDeadline, so whichever opens first decides. Give them one upstream().`;
  });
}

function wayBack({ breaker }: Policy): string {
  const { openFor, openForMax, successes, probeDeadline } = breaker!;
  return [openFor, openForMax, successes, probeDeadline].join(' ');
}
