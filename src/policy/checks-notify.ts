/** The checks of where alerts go: a policy is stored and shown, so its addresses hold no secrets. Stage: policy. */
import type { Draft, Report } from './draft.js';

export function checkNotify(draft: Draft, report: Report): void {
  for (const [i, destination] of (draft.notify ?? []).entries()) {
    if (!destination?.to) continue;
    const field = `notify.${i}`;
    if (destination.to === 'email') {
      checkAddress(destination.smtp, `${field}.smtp`, /^smtps?:\/\//, 'smtp://host:587', report);
    } else if ('url' in destination && destination.url !== undefined) {
      checkAddress(destination.url, `${field}.url`, /^https?:\/\//, 'https://host/path', report);
    }
  }
}

/** The address is not repeated in a fault: it may hold what it should not. */
function checkAddress(
  address: unknown,
  field: string,
  form: RegExp,
  like: string,
  report: Report,
): void {
  if (typeof address !== 'string') return;
  if (!form.test(address) || !URL.canParse(address)) {
    report(field, `is not an address (${like}), nor env('NAME').`);
  } else if (/\/\/[^/]*@/.test(address) || new URL(address).search !== '') {
    report(
      field,
      "holds a login or parameters, and a policy is no place for one. Use env('NAME').",
    );
  }
}
