/** Cuts that do not help: when a service is slow by itself, a smaller cap only loses throughput. Stage: decide. */
import { numberIn } from './law.js';
import type { LawMemory } from './types.js';

/**
 * An episode begins with a cut (in force N₀, overload z₀, throughput X₀). If the cap has come down to `judgeAt` · N₀,
 * yet z has hardly fallen while X fell with the cap, then response time does not answer to the cap: no further
 * cut until it has become clearly worse, or the overload is over.
 */
export const FUTILE = {
  judgeAt: 0.7,
  /** Fall of z below which a cut has not helped. */
  helped: 0.15,
  /** Least slope d ln X ÷ d ln N of a futile cut. */
  slope: 0.5,
  /** Rise of z from which on cutting starts anew. */
  worse: 0.2,
  /** Cuts further apart are not of one episode. */
  apartMs: 60_000,
};

export interface Episode {
  refCap: number;
  refZ: number;
  refX: number;
  /** 1: cuts have been found futile at `refZ`. */
  futile: number;
}

export function episodeIn(memory: LawMemory): Episode {
  return {
    refCap: numberIn(memory, 'refCap', 0),
    refZ: numberIn(memory, 'refZ', 0),
    refX: numberIn(memory, 'refX', 0),
    futile: numberIn(memory, 'futile', 0),
  };
}

export const NO_EPISODE: Episode = { refCap: 0, refZ: 0, refX: 0, futile: 0 };

/** Judges the episode by what is seen now, under `cap`; a fresh one when it has become clearly worse. */
export function judge(episode: Episode, cap: number, z: number, throughput: number): Episode {
  if (episode.refCap === 0) return episode;
  if (episode.futile === 1) return z > episode.refZ + FUTILE.worse ? NO_EPISODE : episode;
  if (cap > FUTILE.judgeAt * episode.refCap || z < episode.refZ - FUTILE.helped) return episode;
  const lost = episode.refX * (cap / episode.refCap) ** FUTILE.slope;
  return throughput <= lost ? { ...episode, futile: 1, refZ: Math.max(z, episode.refZ) } : episode;
}

/** The episode after a cut. */
export function afterCut(
  episode: Episode,
  sinceCutMs: number,
  cap: number,
  z: number,
  throughput: number,
): Episode {
  const goesOn = episode.refCap >= cap && sinceCutMs < FUTILE.apartMs;
  return goesOn ? episode : { refCap: cap, refZ: z, refX: throughput, futile: 0 };
}
