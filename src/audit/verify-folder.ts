/** Proof of an exported folder, without Redis: its files in order, each naming the one before, and each log in them. Stage: audit → cli. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Heads } from '../actuate/chain-report.js';
import { FlyballError } from '../errors.js';
import { createLineCheck, type LimiterCheck } from './check-lines.js';
import { parseLine } from './export-line.js';
import { NO_HEADS, readHeads } from './heads.js';
import {
  digestOf,
  HEADS_FILE,
  headerOf,
  linesOf,
  listSegments,
  type Segment,
  segmentName,
} from './segments.js';
import type { Verifier } from './signature.js';

export interface ExportVerifyOptions {
  limiter?: string | undefined;
  anchors: Heads;
  verifier: Verifier | null;
}

export interface ExportReport {
  from: string;
  /** What is wrong with the files themselves, by the first of them. */
  fault?: { where: string; what: string };
  /** The half line that a killed writer left at the end; whoever exports next cuts it off and writes it again. */
  torn?: { where: string; bytes: number };
  /** The first file that is here; more than 1: older ones have been taken away. */
  first: number;
  files: number;
  limiters: LimiterCheck[];
}

export async function verifyFolder(
  dir: string,
  options: ExportVerifyOptions,
): Promise<ExportReport> {
  const { verifier, anchors } = options;
  const segments = await listSegments(dir).catch((error: Error) => {
    throw noExport(dir, error.message);
  });
  if (segments.length === 0) throw noExport(dir, 'no file audit-….jsonl lies in it');
  const beside = join(dir, HEADS_FILE);
  const hasHeads = await access(beside).then(
    () => true,
    () => false,
  );
  const heads = hasHeads ? await readHeads(beside, verifier, true) : NO_HEADS;
  const check = createLineCheck({
    ...options,
    anchors: {
      limiters: [...anchors.limiters, ...heads.limiters],
      of: (limiter) => [...anchors.of(limiter), ...heads.of(limiter)],
    },
  });
  const report: ExportReport = {
    from: dir,
    first: segments[0]!.n,
    files: segments.length,
    limiters: [],
  };
  for (const [i, segment] of segments.entries()) {
    const before = segments[i - 1];
    try {
      const fault = await wrongOrder(segment, before, verifier);
      if (fault !== null) {
        report.fault = { where: segment.file, what: fault };
        break;
      }
      if (!(await readSegment(segment, i === 0, i === segments.length - 1))) break;
    } catch (error) {
      // Packed and cut short, a folder of that name, no right to it.
      report.fault = {
        where: segment.file,
        what: `it cannot be read: ${(error as Error).message}`,
      };
      break;
    }
  }
  report.limiters = check.end();
  return report;

  /** False: the rest cannot be read. */
  async function readSegment(
    segment: Segment,
    isFirst: boolean,
    isLast: boolean,
  ): Promise<boolean> {
    let n = 0;
    let end = 0;
    for await (const { text, torn, end: here } of linesOf(segment.path)) {
      n++;
      const where = `${segment.file}:${n}`;
      const line = parseLine(text);
      if (line === null || torn) {
        if (isLast && torn) report.torn = { where, bytes: here - end };
        else report.fault = { where, what: 'this line is none of an export: it was edited' };
        return false;
      }
      if (line.kind === 'segment') {
        if (n > 1) {
          report.fault = { where, what: 'a second first line: two files were put together' };
          return false;
        }
        if (isFirst) check.beginAfter(line.heads);
      } else check.line(line, where);
      end = here;
    }
    return true;
  }
}

/** What the first line of a file says of itself and of the one before it, against what is here. */
async function wrongOrder(
  segment: Segment,
  before: Segment | undefined,
  verifier: Verifier | null,
): Promise<string | null> {
  const header = await headerOf(segment);
  if (header === null) return 'its first line is none of an export';
  if (verifier?.check(header) === 'wrong')
    return 'its first line is not signed by the key that it names';
  if (header.n !== segment.n) {
    return `it is named as number ${segment.n}, and was written as ${segmentName(header.n)}: it was renamed, or stands in for another`;
  }
  if (header.n === 1 && Object.keys(header.heads).length > 0) {
    return 'its first line names entries of files before it, and it is the first: it was edited';
  }
  if (before === undefined) return null;
  if (before.n === segment.n) return `there are two files of this number, ${before.file} too`;
  if (before.n !== segment.n - 1)
    return `${segmentName(segment.n - 1)}, the file before it, is missing`;
  const { prev } = header;
  if (prev === null) return `it does not name ${before.file}, the file before it`;
  const { sha256, bytes } = await digestOf(before.path);
  if (sha256 === prev.sha256) return null;
  const size = bytes === prev.bytes ? '' : ` (it had ${prev.bytes} bytes, and has ${bytes})`;
  return `${before.file}, the file before it, is not as it was when this one was begun${size}: it was edited`;
}

function noExport(dir: string, fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_AUDIT_NO_EXPORT',
    `${dir} holds no exported audit log: ${fault}. Give the folder of FLYBALL_AUDIT_FILE.`,
  );
}
