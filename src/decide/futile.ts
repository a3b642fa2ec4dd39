/** Cuts that do not help: when a service is slow by itself, a smaller cap only loses throughput. Stage: decide. */
import { numberIn } from './law.js';
import type { Overload } from './overload.js';
import type { LawMemory } from './types.js';

/**
 * An episode begins with a cut (in force N₀, overload z₀, throughput X₀). If the cap has come down to `judgeAt` · N₀,
 * yet z has hardly fallen while X fell with the cap, then response time does not answer to the cap: no further
 * cut until it has become clearly worse, throughput no longer answers to the cap (`flat`), or the overload is over.
 */
export const FUTILE = {
  judgeAt: 0.7,
  /** Fall of z below which a cut has not helped. */
  helped: 0.15,
  /** Least slope d ln X ÷ d ln N of a futile cut. */
  slope: 0.5,
  /** Slope below which requests wait for each other after all: cuts are worth trying anew. */
  flat: 0.2,
  /** Rise of z from which on cutting starts anew. */
  worse: 0.2,
  /** Cuts further apart are not of one episode. */
  apartMs: 60_000,
  /** While cuts are futile: the aim, as a multiple of what the service takes by itself. */
  room: 1.15,
  /** That ends when z has been below the aim by this much for so long. */
  relief: 0.3,
  reliefMs: 8_000,
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

/**
 * The episode as this sample finds it: over once response time has been well below the aim for a while. A single
 * low reading says nothing, since a quantile of few answers jumps.
 */
export function relieve(
  memory: LawMemory,
  overload: Overload,
  aim: number,
  dtMs: number,
): { episode: Episode; reliefMs: number } {
  const relieved = overload.fresh && overload.z < Math.log(aim) - FUTILE.relief;
  const reliefMs = relieved ? numberIn(memory, 'reliefMs', 0) + dtMs : 0;
  return { episode: reliefMs > FUTILE.reliefMs ? NO_EPISODE : episodeIn(memory), reliefMs };
}

/** Where response time does not answer to the limits: just above what it is by itself, at most `most`. */
export function ownAim(episode: Episode, aim: number, most: number): number {
  const own = episode.futile === 1 ? Math.exp(episode.refZ) * FUTILE.room : 0;
  return Math.max(aim, Math.min(own, most));
}

/** Judges the episode by what is seen now, under `cap`; a fresh one when it has become clearly worse. */
export function judge(
  episode: Episode,
  cap: number,
  z: number,
  throughput: number,
  slope = 1,
): Episode {
  if (episode.refCap === 0) return episode;
  if (episode.futile === 1 && slope < FUTILE.flat) return NO_EPISODE;
  if (episode.futile === 1) return z > episode.refZ + FUTILE.worse ? NO_EPISODE : episode;
  // What helped is the new point to judge from: of a cut too deep only the last part was futile.
  if (z < episode.refZ - FUTILE.helped)
    return { refCap: cap, refZ: z, refX: throughput, futile: 0 };
  if (cap > FUTILE.judgeAt * episode.refCap) return episode;
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
