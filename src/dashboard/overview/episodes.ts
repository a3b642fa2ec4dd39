/** The last episode of each limiter, for the overview of a fleet that is not too large to be asked for it. Stage: dashboard. */
import { useMemo } from 'preact/hooks';
import type { EpisodeView } from '../../view/episodes.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';

/** Of more limiters the question would cost their daemon more than the answer says. */
const MOST_LIMITERS = 200;
const AGAIN_MS = 15_000;

/** By limiter; empty while it is not known. */
export function useLastEpisodes(limiters: number): ReadonlyMap<string, EpisodeView> {
  const few = limiters > 0 && limiters <= MOST_LIMITERS;
  const asked = useAnswer(few ? 'last episodes' : null, () => api.episodes({ limit: 100 }), {
    everyMs: AGAIN_MS,
  });
  return useMemo(() => {
    const newest = new Map<string, EpisodeView>();
    for (const episode of asked.value?.episodes ?? []) {
      const { limiter, lane } = episode;
      if (lane === 'in_force' && !newest.has(limiter)) newest.set(limiter, episode);
    }
    return newest;
  }, [asked.value]);
}
