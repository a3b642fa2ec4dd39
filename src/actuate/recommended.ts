/** What the sentence of a recommendation begins with, for who writes and who shortens it. Pure. Stage: actuate, audit. */
import type { Mode } from '../redis/params.js';

export function recommendedLead(mode: Mode): string {
  return `Recommended, not applied (mode ${mode}): `;
}
