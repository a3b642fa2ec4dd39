/** What holds for a while, as the params carry it: windows of the policy's schedule, and a person's bounds. Stage: daemon → cli. */
import { LONGEST_NAME } from './by-person.js';

/** From when until when, Redis ms. */
export interface Span {
  fromMs: number;
  untilMs: number;
}

/** Bounds that a person set for a while; what is left out stays as policy and profile say. */
export interface PersonBounds {
  rate?: { min?: number; max?: number };
  inFlight?: { min?: number; max?: number };
}

export interface Windows {
  /** The profile whose numbers and bounds hold. */
  profile?: Span & { name: string };
  /** The scheduled freeze that was begun; a person may have thawed it since. */
  freeze?: Span & { why: string };
  /** A person's bounds, and who they are. */
  bounds?: Span & PersonBounds & { by: string };
}

/** Who holds a limiter that its schedule froze: the policy ends that by itself. */
export const SCHEDULE = 'the schedule';

export function windowsText(windows: Windows): string {
  const { profile, freeze, bounds } = windows;
  const given = {
    ...(profile && { profile }),
    ...(freeze && { freeze }),
    ...(bounds && { bounds: { ...bounds, by: bounds.by.slice(0, LONGEST_NAME) } }),
  };
  return Object.keys(given).length === 0 ? '' : JSON.stringify(given);
}

/** What nothing of ours wrote is no window. */
export function parseWindows(text: string): Windows {
  if (text === '') return {};
  try {
    const { profile, freeze, bounds } = JSON.parse(text) as Windows;
    return {
      ...(isSpan(profile) && typeof profile.name === 'string' && { profile }),
      ...(isSpan(freeze) && typeof freeze.why === 'string' && { freeze }),
      ...(isSpan(bounds) && typeof bounds.by === 'string' && areBounds(bounds) && { bounds }),
    };
  } catch {
    return {};
  }
}

function areBounds({ rate = {}, inFlight = {} }: PersonBounds): boolean {
  const ends = [rate.min, rate.max, inFlight.min, inFlight.max].filter((one) => one !== undefined);
  return ends.length > 0 && ends.every((one) => Number.isFinite(one) && one > 0);
}

function isSpan(value: Span | undefined): value is Span {
  return Number.isFinite(value?.fromMs) && Number.isFinite(value?.untilMs);
}
