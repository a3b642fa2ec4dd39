/** A history from a CSV file: a line for each minute or other even stretch, columns by name. Stage: cli. */
import { readFileSync } from 'node:fs';
import { FlyballError } from '../errors.js';
import { isoMs } from '../moment.js';
import type { Policy } from '../policy/schema.js';
import type { Recorded } from '../sim/replay-recorded.js';
import { checkColumn, recordedFrom } from './backtest-columns.js';

const LONGEST_MS = 3_600_000;
const MINUTE_MS = 60_000;

interface Line {
  atMs: number;
  values: Record<string, number | undefined>;
}

/** Oldest first. Columns beside those that are known are an error, so that a typing error is not silence. */
export function readCsv(path: string, policy: Policy): Recorded[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(path, `cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const [head = '', ...rest] = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const names = head.split(',').map((name) => name.trim());
  for (const needed of ['atMs', 'okPerSecond']) {
    if (!names.includes(needed)) throw wrong(path, `has no column ${needed} in its first line`);
  }
  for (const name of names) if (name !== 'atMs') checkColumn(policy, name);
  const lines = rest.flatMap((line, i) =>
    line.trim() === '' ? [] : [lineOf(path, names, line, i + 2)],
  );
  lines.sort((a, b) => a.atMs - b.atMs);
  const twice = lines.find(({ atMs }, i) => lines[i + 1]?.atMs === atMs);
  if (twice) throw wrong(path, `has two lines of ${new Date(twice.atMs).toISOString()}`);
  const everyMs = spacing(lines);
  return lines.flatMap(({ atMs, values }, i) => {
    const spanMs = Math.min(everyMs, (lines[i + 1]?.atMs ?? Number.POSITIVE_INFINITY) - atMs);
    return recordedFrom(policy, { atMs, spanMs }, values) ?? [];
  });
}

function lineOf(path: string, names: readonly string[], line: string, number: number): Line {
  const cells = line.split(',').map((cell) => cell.trim());
  const values: Record<string, number | undefined> = {};
  let atMs = Number.NaN;
  for (const [k, name] of names.entries()) {
    const cell = cells[k] ?? '';
    if (name === 'atMs') {
      atMs = isoMs(cell);
      if (Number.isNaN(atMs)) atMs = Number(cell || 'none');
      const shown = JSON.stringify(cell);
      if (Number.isFinite(atMs) && atMs > 0) continue;
      throw wrong(path, `line ${number}: atMs is ${shown}; milliseconds since 1970 or an ISO time`);
    }
    if (cell === '') continue;
    const value = Number(cell);
    if (!Number.isFinite(value) || value < 0) {
      const shown = JSON.stringify(cell);
      throw wrong(path, `line ${number}: ${name} is ${shown}; a number ≥ 0, or nothing`);
    }
    values[name] = value;
  }
  return { atMs, values };
}

/** The usual time from line to line; more than that is a gap. */
function spacing(lines: readonly Line[]): number {
  const gaps = lines.slice(1).map(({ atMs }, i) => atMs - lines[i]!.atMs);
  if (gaps.length === 0) return MINUTE_MS;
  gaps.sort((a, b) => a - b);
  return Math.min(LONGEST_MS, Math.max(1000, gaps[gaps.length >> 1]!));
}

function wrong(path: string, what: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_BACKTEST_CSV',
    `${path} ${what}. docs/guides/backtest.md lists the columns.`,
  );
}
