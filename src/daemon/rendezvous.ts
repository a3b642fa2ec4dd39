/** Which daemon leads which limiter: highest random weight, so that each daemon comes to the same answer by itself. Stage: daemon. */

/**
 * The owners in the order in which they should lead this limiter. One that comes or goes changes no place between
 * the others: only its own part of the limiters moves.
 */
export function ranked(limiter: string, owners: readonly string[]): string[] {
  const weights = new Map(
    identities(owners).map(([owner, identity]) => [owner, weightOf(identity, limiter)]),
  );
  return [...owners].sort(
    (a, b) => weights.get(b)! - weights.get(a)! || (a < b ? -1 : a > b ? 1 : 0),
  );
}

/**
 * A daemon's name alone, where no other living one has it: then it gets the same limiters after a restart. Else the
 * whole owner id (`name:pid:random`).
 */
function identities(owners: readonly string[]): [owner: string, identity: string][] {
  const nameOf = (owner: string) => owner.split(':', 1)[0]!;
  const count = new Map<string, number>();
  for (const owner of owners) count.set(nameOf(owner), (count.get(nameOf(owner)) ?? 0) + 1);
  return owners.map((owner) => [owner, count.get(nameOf(owner)) === 1 ? nameOf(owner) : owner]);
}

/** FNV-1a, then mixed until each bit of the input moves half of the output. */
function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function weightOf(identity: string, limiter: string): number {
  return hash32(`${identity}\n${limiter}`);
}

/** A part of 1, the same for each daemon, even over names: where in a tick a limiter has its turn. */
export function phaseOf(limiter: string): number {
  return hash32(limiter) / 2 ** 32;
}
