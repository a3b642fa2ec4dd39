/** What a bench found, as text for people and one line of JSON for programs. */
import { cpus } from 'node:os';

/**
 * A target and whether it was met; never rounded in its favour.
 * @param {'>=' | '<='} sign
 */
export function target(name, value, sign, bound) {
  const met = Number.isFinite(value) && (sign === '>=' ? value >= bound : value <= bound);
  return { name, value: rounded(value), target: `${sign} ${bound}`, met };
}

/**
 * @param {{ tables: { title: string, columns: string[], rows: (string | number)[][] }[], targets: object[],
 *   notes?: string[], results?: object }} result `results`: figures for programs, beside the targets
 */
export function printBench(name, { tables, targets, results, notes = [] }, jsonOnly) {
  const line = JSON.stringify({ name, targets, ...(results === undefined ? {} : { results }) });
  if (!jsonOnly) {
    const [cpu] = cpus();
    print(`${name}, ${new Date().toISOString()}`);
    print(`Node ${process.version}, ${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}`);
    for (const { title, columns, rows } of tables) printTable(title, columns, rows);
    printTable(
      'Targets',
      ['', 'value', 'target', ''],
      targets.map(({ name, value, target, met }) => [
        name,
        value ?? '–',
        target,
        met ? 'met' : 'NOT MET',
      ]),
    );
    for (const note of notes) print(`\n${note}`);
    print('');
  }
  print(line);
}

function printTable(title, columns, rows) {
  const texts = [columns, ...rows].map((row) => row.map((cell) => cellText(cell)));
  const widths = columns.map((_column, at) => Math.max(...texts.map((row) => row[at].length)));
  print(`\n${title}`);
  for (const row of texts) {
    const cells = row.map((text, at) =>
      at === 0 ? text.padEnd(widths[at]) : text.padStart(widths[at]),
    );
    print(`  ${cells.join('  ').trimEnd()}`);
  }
}

function cellText(cell) {
  return typeof cell === 'number' ? String(rounded(cell)) : cell;
}

/** Three digits that count; a whole number above that. */
export function rounded(value) {
  if (!Number.isFinite(value)) return null;
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3));
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
