/** What exports a log: a place to which entries go, one writer at a time. Stage: audit → daemon. */
import type { GapLine, HeadLine, Position } from './export-line.js';

/** One entry, as Redis gave it, or a gap before the next one. */
export type ExportItem =
  | { kind: 'entry'; limiter: string; id: string; fields: string[] }
  | { kind: 'gap'; gap: GapLine };

export interface Sink {
  /** `file`, `postgres`: in metrics and logs. */
  readonly kind: 'file' | 'postgres';
  /** The same place has the same name in each daemon. */
  readonly name: string;
  /** For people: the folder, or the database without its login. */
  readonly to: string;
  /** Id of the key that signs heads; null: nobody signs them. */
  readonly signedBy: string | null;
  /** Becomes, or stays, the one that writes there; false: another does. Rejects when the place cannot be used. */
  acquire(): Promise<boolean>;
  /** What it has, once acquired. */
  position(limiter: string): Position | null;
  /** Of which entry its newest head was when it was acquired; null: there is none near its end. */
  headed(limiter: string): Position | null;
  /** Which of these hashes of a limiter it has, as far back as is worth looking. */
  holds(limiter: string, hashes: readonly string[]): Promise<ReadonlySet<string>>;
  /** All of them are there for good when it resolves; when it rejects, begin anew at `position`, once acquired again. */
  append(items: readonly ExportItem[]): Promise<void>;
  /** The newest hash of each log, of those that have moved. */
  appendHeads(heads: readonly HeadLine[]): Promise<void>;
  /** What is done after a fault: nothing is held open, what was begun is looked at anew. Never rejects. */
  reopen(): Promise<void>;
  /** Lets another one write there. Never rejects. */
  release(): Promise<void>;
}
