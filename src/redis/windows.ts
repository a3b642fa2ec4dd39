/** The windows of a policy's schedule that are in force, as the params carry them. Stage: daemon → cli. */

/** From when until when, Redis ms. */
export interface Span {
  fromMs: number;
  untilMs: number;
}

export interface Windows {
  /** The profile whose numbers and bounds hold. */
  profile?: Span & { name: string };
  /** The scheduled freeze that was begun; a person may have thawed it since. */
  freeze?: Span & { why: string };
}

/** Who holds a limiter that its schedule froze: the policy ends that by itself. */
export const SCHEDULE = 'the schedule';

export function windowsText(windows: Windows): string {
  const { profile, freeze } = windows;
  if (profile === undefined && freeze === undefined) return '';
  return JSON.stringify({ ...(profile && { profile }), ...(freeze && { freeze }) });
}

/** What nothing of ours wrote is no window. */
export function parseWindows(text: string): Windows {
  if (text === '') return {};
  try {
    const { profile, freeze } = JSON.parse(text) as Windows;
    return {
      ...(isSpan(profile) && typeof profile.name === 'string' && { profile }),
      ...(isSpan(freeze) && typeof freeze.why === 'string' && { freeze }),
    };
  } catch {
    return {};
  }
}

function isSpan(value: Span | undefined): value is Span {
  return Number.isFinite(value?.fromMs) && Number.isFinite(value?.untilMs);
}
