/** `audit --reason` with a code that no entry has: an error with those there are, in place of an empty list. Stage: cli. */
import { isReadable } from '../actuate/entry.js';
import { REASON_CODES } from '../audit/episode-cause.js';
import type { LimiterAddress } from '../redis/keys.js';
import { readEntriesOf } from '../view/entries.js';
import { UsageError } from './output.js';
import type { Session } from './session.js';
import { clean, closest } from './text.js';

/** So many of the newest entries are looked through for what codes there are. */
const LOOK_THROUGH = 500;

/** A code that this version does not write may stand in a log of another one: it is wrong when none has it. */
export async function refuseUnknownReasons(
  { redis }: Session,
  addresses: readonly LimiterAddress[],
  reasons: readonly string[] = [],
): Promise<void> {
  for (const reason of reasons) {
    if (REASON_CODES.includes(reason)) continue;
    const { listed } = await readEntriesOf(redis, addresses, { reason, limit: 1 });
    if (listed.some(({ entry }) => isReadable(entry))) continue;
    const near = closest(reason, REASON_CODES);
    const newest = await readEntriesOf(redis, addresses, { limit: LOOK_THROUGH });
    const seen = newest.listed.flatMap(({ entry }) => (isReadable(entry) ? entry.body.reason : []));
    const codes = [...new Set(seen)].sort().map(clean).join(', ');
    throw new UsageError(
      `--reason ${reason} is no reason code: none is written so, and no entry has it.`,
      `${near === undefined ? '' : `Did you mean ${near}? `}${codes === '' ? 'There are no entries yet.' : `The newest entries have: ${codes}.`}`,
    );
  }
}
