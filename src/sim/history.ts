/** A service's history as people have it, JSON or CSV → points, or what is wrong with the first bad one. Stage: simulate. */
import { FlyballError } from '../errors.js';
import type { HistoryPoint } from './fit.js';

const NEEDED = ['atMs', 'okPerSecond', 'meanMs'] as const;
const OPTIONAL = ['p95Ms', 'inFlight'] as const;
const FIELDS: readonly string[] = [...NEEDED, ...OPTIONAL];
const FORM =
  'Write a JSON list of { atMs, okPerSecond, meanMs, p95Ms?, inFlight? }, or CSV whose first line has these names.';

/** `name` is only for the errors. */
export function parseHistory(text: string, name: string): HistoryPoint[] {
  const trimmed = text.trim();
  const rows = /^[[{]/.test(trimmed) ? jsonRows(trimmed, name) : csvRows(trimmed, name);
  return rows.map(({ row, where }) => pointOf(row, where, name));
}

interface Row {
  row: Record<string, unknown>;
  where: string;
}

function jsonRows(text: string, name: string): Row[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw wrong(name, `is no JSON (${(error as Error).message}).`);
  }
  const list = Array.isArray(value) ? value : (value as { points?: unknown }).points;
  if (!Array.isArray(list)) throw wrong(name, 'is no list of points.');
  return list.map((row, i) => ({ row: row ?? {}, where: `point ${i + 1}` }));
}

function csvRows(text: string, name: string): Row[] {
  const [head = '', ...lines] = text.split(/\r?\n/);
  const names = head.split(',').map((field) => field.trim());
  const missing = NEEDED.filter((field) => !names.includes(field));
  if (missing.length > 0)
    throw wrong(name, `has no column ${missing.join(', ')} in its first line.`);
  return lines.flatMap((line, i) => {
    if (line.trim() === '') return [];
    const cells = line.split(',').map((cell) => cell.trim());
    const pairs = names.map((field, k): [string, unknown] => {
      const cell = cells[k] ?? '';
      return [field, cell === '' ? undefined : Number(cell)];
    });
    return [{ row: Object.fromEntries(pairs), where: `line ${i + 2}` }];
  });
}

function pointOf(row: Record<string, unknown>, where: string, name: string): HistoryPoint {
  const point: Record<string, number> = {};
  for (const field of FIELDS) {
    const value = row[field];
    const isOptional = (OPTIONAL as readonly string[]).includes(field);
    if (isOptional && (value === undefined || value === null)) continue;
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
      const shown = value === undefined ? 'missing' : JSON.stringify(value);
      throw wrong(name, `${where}: ${field} is ${shown}; a number ≥ 0 is needed.`);
    }
    point[field] = value;
  }
  return point as unknown as HistoryPoint;
}

function wrong(name: string, what: string): FlyballError {
  return new FlyballError('FLYBALL_E_SIM_HISTORY', `${name} ${what} ${FORM}`);
}
