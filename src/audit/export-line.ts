/** The lines of an exported log: segments, entries, gaps and heads; one JSON object each. Stage: audit. */
import type { GapLine as Gap } from '../actuate/chain-report.js';
import { fieldOf } from '../redis/stream-id.js';

/** The newest entry of a limiter that an export has. */
export interface Position {
  id: string;
  hash: string;
  epoch: number;
  revision: number;
}

/** The first line of a file: what lies in the one before it, and where each log stood there. */
export interface SegmentLine {
  v: 1;
  kind: 'segment';
  n: number;
  prefix: string;
  atMs: number;
  prev: { file: string; sha256: string; bytes: number } | null;
  heads: Record<string, Position>;
  key?: string;
  sig?: string;
}

/** As Redis stored it; `text` are the bytes that were hashed. */
export interface EntryLine {
  kind: 'entry';
  limiter: string;
  id: string;
  /** Names and values in turn, as in the stream. */
  fields: string[];
  /** The line does not read as an exporter writes it: what stands beside the body was edited. Says how. */
  wrong?: string;
}

export interface GapLine extends Gap {
  v: 1;
  kind: 'gap';
  limiter: string;
  atMs: number;
  key?: string;
  sig?: string;
}

/** The newest hash of a log at a time: what a proof needs, signed when there is a key. */
export interface HeadLine extends Position {
  v: 1;
  kind: 'head';
  prefix: string;
  limiter: string;
  atMs: number;
  /** Of the ids of the limiter's entries since its head before this one; absent: who wrote it does not know them all. */
  ids?: string;
  key?: string;
  sig?: string;
}

export type ExportLine = SegmentLine | EntryLine | GapLine | HeadLine;

const BODY = ',"body":';
const KNOWN = ['kind', 'epoch', 'revision', 'hash', 'prev', 'body'];

/**
 * An entry as a line. Its body stands there as the very bytes that were hashed, so that one line is one JSON object to
 * read, and proof all the same; an entry of another form (edited from outside) goes along as its fields.
 */
export function entryText(limiter: string, id: string, fields: readonly string[]): string {
  const names = fields.filter((_, i) => i % 2 === 0);
  const values = fields.filter((_, i) => i % 2 === 1);
  const [, epoch = '', revision = '', , , body = ''] = values;
  const usual =
    names.join() === KNOWN.join() &&
    [epoch, revision].every((n) => String(Number(n)) === n) &&
    isOneLineObject(body);
  return usual
    ? usualText(limiter, id, values)
    : JSON.stringify({ v: 1, kind: 'entry', limiter, id, fields });
}

function usualText(limiter: string, id: string, values: readonly string[]): string {
  const [type, epoch, revision, hash, prev, body] = values;
  const place = { type, epoch: Number(epoch), revision: Number(revision) };
  const head = { v: 1, kind: 'entry', limiter, id, ...place, hash, prev };
  return `${JSON.stringify(head).slice(0, -1)}${BODY}${body}}`;
}

function isOneLineObject(text: string): boolean {
  if (!text.startsWith('{') || !text.endsWith('}') || /[\r\n]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A line read again; null: it is none of ours. */
export function parseLine(text: string): ExportLine | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const line = value as Record<string, unknown>;
  if (line.kind === 'entry') return entryOf(text, line);
  if (line.kind === 'segment') return isSegment(line) ? (line as unknown as SegmentLine) : null;
  if (typeof line.limiter !== 'string' || !isTime(line.atMs) || !isSigned(line)) return null;
  if (line.kind === 'gap') return isGap(line) ? (line as unknown as GapLine) : null;
  if (line.kind === 'head') return isHead(line) ? (line as unknown as HeadLine) : null;
  return null;
}

function isSegment({ n, atMs, prev, heads, ...line }: Record<string, unknown>): boolean {
  if (!Number.isSafeInteger(n) || !isTime(atMs) || !isSigned(line) || !isObject(heads))
    return false;
  if (!Object.values(heads).every((head) => isObject(head) && isPosition(head))) return false;
  return prev === null || (isObject(prev) && isText(prev.file) && isText(prev.sha256));
}

function isGap({ why, after, before, prev }: Record<string, unknown>): boolean {
  return isText(why) && isText(prev) && isId(before) && (after === null || isId(after));
}

function isHead(line: Record<string, unknown>): boolean {
  return isPosition(line) && (line.ids === undefined || isText(line.ids));
}

function isPosition({ id, hash, epoch, revision }: Record<string, unknown>): boolean {
  return isId(id) && isText(hash) && typeof epoch === 'number' && typeof revision === 'number';
}

function isSigned({ key, sig }: Record<string, unknown>): boolean {
  return [key, sig].every((value) => value === undefined || isText(value));
}

function isId(value: unknown): boolean {
  return isText(value) && /^\d+-\d+$/.test(value);
}

/** One that Date knows. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function entryOf(text: string, line: Record<string, unknown>): EntryLine | null {
  const { limiter, id } = line;
  if (typeof limiter !== 'string' || !isText(id) || !isId(id)) return null;
  if (Array.isArray(line.fields)) {
    const fields = line.fields.map(String);
    return {
      kind: 'entry',
      limiter,
      id,
      fields,
      ...wrongIn(line, text, entryText(limiter, id, fields)),
    };
  }
  const at = text.indexOf(BODY);
  if (at < 0) return null;
  const { type, epoch, revision, hash, prev } = line;
  const values = [type, epoch, revision, hash, prev, text.slice(at + BODY.length, -1)].map(String);
  const fields = values.flatMap((value, i) => [KNOWN[i]!, value]);
  return {
    kind: 'entry',
    limiter,
    id,
    fields,
    ...wrongIn(line, text, usualText(limiter, id, values)),
  };
}

function wrongIn({ v }: Record<string, unknown>, text: string, written: string) {
  if (text === written) return {};
  if (typeof v === 'number' && v > 1) {
    return { wrong: `its line is of version ${v}, which this version of Flyball does not know` };
  }
  return { wrong: 'its line was edited beside its body: no exporter writes it so' };
}

/** Where an entry leaves an export; its hash is empty when the entry has none. */
export function positionOf({ id, fields }: Pick<EntryLine, 'id' | 'fields'>): Position {
  return {
    id,
    hash: fieldOf(fields, 'hash'),
    epoch: Number(fieldOf(fields, 'epoch')) || 0,
    revision: Number(fieldOf(fields, 'revision')) || 0,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
