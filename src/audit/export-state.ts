/** What a daemon says of a place that it exports audit logs to, and how others read that. Pure. Stage: audit → daemon, view. */
import { z } from 'zod';

export interface ExportState {
  kind: 'file' | 'postgres';
  /** A folder, or a database without its login. */
  to: string;
  /** false: another daemon writes there. */
  writes: boolean;
  /** Id of the key that signs heads; null: nobody signs them. */
  signedBy: string | null;
  /** When heads were last written, wall ms; null: not by this daemon. */
  headsMs: number | null;
  /** Age of the oldest entry that is not there yet, ms; null: another daemon knows. */
  lagMs: number | null;
  /** The newest entry that is there, and when Redis stored it; null: not known to this daemon. */
  last: { limiter: string; epoch: number; revision: number; atMs: number } | null;
  /** What keeps it from exporting now. */
  fault: string | null;
}

const text = z.string().max(4_096);
const ms = z.number().min(0).max(8.64e15);

const exportStates = z
  .array(
    z.object({
      kind: z.enum(['file', 'postgres']),
      to: text,
      writes: z.boolean(),
      signedBy: text.nullable(),
      headsMs: ms.nullable(),
      lagMs: ms.nullable(),
      last: z
        .object({ limiter: text, epoch: z.number(), revision: z.number(), atMs: ms })
        .nullable(),
      fault: text.nullable(),
    }),
  )
  .max(10) satisfies z.ZodType<ExportState[]>;

/** null: it says nothing that can be read, as an earlier version does not. */
export function readExportStates(said: unknown): ExportState[] | null {
  return exportStates.safeParse(said).data ?? null;
}
