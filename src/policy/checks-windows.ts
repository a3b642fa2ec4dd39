/** What windows and profiles say of each other, and of the bounds. Stage: policy. */
import type { Draft, Report } from './draft.js';
import { parseMoment } from './windows.js';

export function checkWindows(draft: Draft, report: Report): void {
  const { schedule, profiles } = draft;
  const names = Object.keys(profiles ?? {});
  for (const [i, window] of (Array.isArray(schedule) ? schedule : []).entries()) {
    const field = `schedule.${i}`;
    const { profile, freeze, on, from = '', to = '' } = window ?? {};
    if ((profile === undefined) === (freeze === undefined)) {
      report(
        field,
        profile === undefined
          ? "says neither which profile holds nor that it freezes. Give profile: 'sale' or freeze: 'stocktaking'."
          : 'names a profile and a freeze. Write two windows.',
      );
    }
    if (profile !== undefined && profiles !== undefined && !names.includes(profile)) {
      const known = names.length === 0 ? 'none is there' : `profiles are ${names.join(', ')}`;
      report(`${field}.profile`, `is "${profile}", but ${known}. Add it to profiles.`);
    }
    if (profile !== undefined && profiles === undefined) {
      report(
        `${field}.profile`,
        `is "${profile}", but there are no profiles. Give profiles: { '${profile}': { times: 3 } }.`,
      );
    }
    const [begins, ends] = [parseMoment(from), parseMoment(to)];
    if (begins === null || ends === null) continue;
    if (begins.dated !== ends.dated) {
      report(field, 'has a date at one end alone. Give both ends one, or days in `on`.');
    } else if (begins.dated && ends.ms <= begins.ms) {
      report(`${field}.to`, `is ${to}, not after from (${from}). Swap them.`);
    }
    if (begins.dated && on !== undefined) {
      report(`${field}.on`, 'has no meaning where from and to are dated. Leave it out.');
    }
  }
}
