/** The demo's result: knee by phase, both plays, and the audit entries. Pure. Stage: demo. */
import type { StoredEntry } from '../actuate/audit.js';
import { type AuditRecord, entryRecord } from '../view/entry.js';
import type { PlayRecord } from './play.js';
import type { Knee } from './ramp.js';
import { PHASES, type PhaseName } from './story.js';
import { type PlaySummary, summarise } from './summary.js';

/** The one JSON object that `--json` ends with. Its keys are fixed. */
export interface DemoResult {
  /** Best goodput (per second) that any fixed in-flight cap gave, at the database speed of the phase. */
  knee: Record<PhaseName, number>;
  without: PlaySummary;
  with: PlaySummary;
  /** Audit entries of kind `change`, oldest first. */
  changes: AuditRecord[];
}

export function demoResult(
  knee: Knee,
  without: PlayRecord,
  guarded: PlayRecord,
  changes: readonly StoredEntry[],
): DemoResult {
  return {
    knee: kneeByPhase(knee, without),
    without: summarise(without),
    with: summarise(guarded),
    changes: changes.map((entry) => entryRecord(entry, false)),
  };
}

function kneeByPhase(knee: Knee, { phases }: PlayRecord): Record<PhaseName, number> {
  const pairs = PHASES.map((name) => {
    const slow = phases.find((phase) => phase.name === name)!.databaseSlowdown > 1;
    return [name, Math.round((slow ? knee.halfSpeed : knee.fullSpeed) * 10) / 10] as const;
  });
  return Object.fromEntries(pairs) as Record<PhaseName, number>;
}
