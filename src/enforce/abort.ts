/** One listener a signal, however many takes it stops: eleven of them would be a warning of Node's. Stage: enforce. */

interface Followers {
  readonly all: Set<() => void>;
  readonly fire: () => void;
}

const known = new WeakMap<AbortSignal, Followers>();

/** Calls `abort` once the signal says stop; returns how to follow it no longer. The signal has not said so yet. */
export function onAbort(signal: AbortSignal, abort: () => void): () => void {
  const followers = known.get(signal) ?? followed(signal);
  followers.all.add(abort);
  return () => {
    const { all, fire } = followers;
    if (!all.delete(abort) || all.size > 0) return;
    known.delete(signal);
    signal.removeEventListener('abort', fire);
  };
}

function followed(signal: AbortSignal): Followers {
  const all = new Set<() => void>();
  const fire = () => {
    known.delete(signal);
    const told = [...all];
    all.clear();
    for (const abort of told) abort();
  };
  const followers = { all, fire };
  known.set(signal, followers);
  signal.addEventListener('abort', fire, { once: true });
  return followers;
}
