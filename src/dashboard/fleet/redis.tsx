/** The Redis of the fleet, in facts; what endangers limits is said. Stage: dashboard. */
import type { FleetRedis } from '../../view/fleet.js';
import { number, span } from '../../view/text.js';
import { Outside } from '../parts/outside.jsx';

export function Redis({ redis }: { redis: FleetRedis }) {
  const facts: [string, string | null][] = [
    ['Address', redis.url],
    [
      'Version',
      redis.version === null
        ? null
        : `${redis.version}${redis.role === null ? '' : `, ${redis.role}`}`,
    ],
    ['Round trip', `${number(redis.roundTripMs)} ms`],
    [
      'Clock',
      `${span(Math.abs(redis.aheadMs))} ${redis.aheadMs < 0 ? 'behind' : 'ahead of'} this daemon's`,
    ],
    ['Up for', redis.uptimeS === null ? null : span(redis.uptimeS * 1000)],
    ['Replicas', redis.replicas === null ? null : String(redis.replicas)],
    ['Memory', memoryText(redis)],
    ['When full', redis.evictionPolicy],
    ['Keys evicted', redis.evictedKeys === null ? null : String(redis.evictedKeys)],
    [
      'Append-only file',
      redis.appendOnly === null
        ? null
        : redis.appendOnly
          ? 'on'
          : 'off: a restart loses what is not in a snapshot',
    ],
  ];
  return (
    <section class="sheet" aria-label="Redis">
      <h2>Redis</h2>
      {redis.unknown !== null && (
        <p class="error">
          <Outside text={redis.unknown} />
        </p>
      )}
      <dl class="facts">
        {facts.map(([name, text]) =>
          text === null ? null : (
            <div class="pair" key={name}>
              <dt>{name}</dt>
              <dd>
                <Outside text={text} />
              </dd>
            </div>
          ),
        )}
      </dl>
    </section>
  );
}

function memoryText({ usedBytes, maxBytes }: FleetRedis): string | null {
  if (usedBytes === null) return null;
  const mb = (bytes: number) => `${number(Math.round(bytes / 104_857.6) / 10)} MB`;
  return `${mb(usedBytes)}${maxBytes ? ` of ${mb(maxBytes)}` : ', no limit set'}`;
}
