/** The holds that are active now, with the time left and what ends them, below what is told of the past. Stage: cli. */
import { readParams } from '../actuate/actuator.js';
import { endCommand } from '../actuate/verbs/ends.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Session } from '../view/limiters.js';
import { holdsOf } from '../view/status.js';
import { clean, span } from '../view/text.js';
import type { CliIo } from './output.js';

/** Talk: nothing of it is part of the result. */
export async function sayHolds(
  io: CliIo,
  { redis }: Session,
  addresses: readonly LimiterAddress[],
): Promise<void> {
  for (const address of addresses) {
    // Params that cannot be read hold nothing that anybody could tell.
    const read = await readParams(redis, address).catch(() => null);
    if (read?.params == null) continue;
    for (const { kind, by, leftMs } of holdsOf(read.params, read.nowUs / 1000)) {
      const left = leftMs === null ? 'until a person ends it' : `for ${span(leftMs)} more`;
      const name = clean(address.name);
      const is = kind === 'bounds' ? 'has bounds set' : `is ${kind}`;
      io.say(`${name} ${is} by ${clean(by) || '?'} ${left}; ${endCommand(kind, name)} ends it.`);
    }
  }
}
