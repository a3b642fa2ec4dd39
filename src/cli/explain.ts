/** `flyball explain`: why a revision is what it is, recomputed from its entry; what lies around it; how to undo it. Stage: cli. */
import { Command } from 'commander';
import { type Explanation, explain } from '../actuate/explain.js';
import { EXIT } from '../errors.js';
import { type AroundView, readAround } from '../view/around.js';
import { entryRecord } from '../view/entry.js';
import { unitOf, withUnit } from '../view/signal-unit.js';
import { signalViews } from '../view/signals.js';
import { entryLines } from './entry-text.js';
import { aroundLines, undoOf } from './explain-around.js';
import { parseRevision, parseWhole } from './options.js';
import type { CliIo, Colours } from './output.js';
import { findLimiter, withRedis } from './session.js';
import { levelOf } from './signals-text.js';
import { termMeaning } from './terms.js';
import { clean, localTime, number, span } from './text.js';

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('explain')
      .description(
        'Why a revision is what it is, whether it still stands, what it cost, how to undo it.',
      )
      .argument('<limiter>')
      .argument('<revision>', 'see flyball audit <limiter>', parseRevision)
      .option(
        '--epoch <epoch>',
        'when a revision exists in several epochs (default: newest)',
        parseWhole,
      )
      .addHelpText(
        'before',
        'Examples:\n  flyball explain checkout 42\n  flyball explain checkout 42 --json\n',
      )
      .action(async (limiter: string, revision: number, flags: { epoch?: number }) => {
        await withRedis(io, async (session) => {
          const address = await findLimiter(session, limiter);
          const found = await explain(session.redis, address, revision, flags.epoch);
          show(io, found, await readAround(session.redis, address, found.entry));
        });
      }),
  );
}

function show(io: CliIo, found: Explanation, around: AroundView): void {
  if (found.verdict === 'differs') io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({
      limiter: found.entry.body.limiter,
      verdict: found.verdict,
      sentence: found.sentence,
      differences: found.differences ?? [],
      decision: found.decision ?? null,
      entry: entryRecord(found.entry, true),
      ...around,
      undo: undoOf(found.entry, around),
    });
    return;
  }
  const { c } = io;
  io.out(entryLines(c, found.entry, { columns: io.columns, withLimiter: true }));
  // Before the terms, which are many: whether it can be trusted is asked first.
  io.out(`${verdictMark(c, found)}  ${clean(ownWords(found))}`);
  for (const line of inputs(c, found)) io.out(line);
  for (const line of aroundLines(c, found.entry, around)) io.out(line);
}

/** Without the sentence of the entry, which stands above it. */
function ownWords({ sentence, entry }: Explanation): string {
  const { sentence: told } = entry.body;
  return sentence.endsWith(` ${told}`) ? sentence.slice(0, -told.length - 1) : sentence;
}

function verdictMark(c: Colours, { verdict }: Explanation): string {
  if (verdict === 'agrees') return c.green('agrees');
  if (verdict === 'differs') return c.red('differs');
  return c.dim(verdict.replaceAll('_', ' '));
}

/** What the law saw, its terms, and what each guard did; empty for a person's verb. */
function inputs(c: Colours, { entry, policy }: Explanation): string[] {
  const { sample, terms, verdicts, detail, law } = entry.body;
  const lines: string[] = [];
  const list = (title: string, rows: string[]) => {
    if (rows.length > 0) lines.push(c.bold(title), ...rows.map((row) => `  ${row}`));
  };
  if (sample) {
    const views = policy ? signalViews(policy, sample, {}) : [];
    const levels = new Map(views.map((view) => [view.signal, levelOf(view)]));
    list(
      `what ${clean(String(law ?? 'the law'))} saw`,
      Object.entries(sample.signals).map(([name, s]) => {
        const of = policy?.signals[name];
        const read = s.value === null ? 'unknown' : withUnit(s.value, of ? unitOf(of) : '');
        const old = s.fresh ? '' : ` (${clean(s.reason ?? 'not fresh')}, ${span(s.ageMs)} old)`;
        const level = levels.get(name) ? `; ${levels.get(name)}` : '';
        return `${clean(name)}  ${read}${old}  of ${s.count} observations${level}`;
      }),
    );
    const t = sample.traffic;
    lines.push(
      `  traffic  ${number(t.offeredRate)}/s offered, ${number(t.admittedRate)}/s admitted, ${number(t.okRate)}/s good; in flight ${t.inFlight === null ? 'unknown' : number(t.inFlight)}; ${t.reporting} of ${t.processes} processes report completions`,
      `  in force  ${sample.inForce.state}, rate ${number(sample.inForce.rate)}/s, cap ${sample.inForce.inFlightMax === 0 ? 'none' : number(sample.inForce.inFlightMax)}${sample.inForce.held === 'none' ? '' : `, ${sample.inForce.held}`}`,
    );
  }
  list(
    'terms',
    Object.entries(terms ?? {}).map(([name, value]) => {
      const term = `${clean(name)} = ${number(value)}`;
      const meaning = termMeaning(name);
      return meaning === '' ? term : `${term.padEnd(20)}  ${c.dim(meaning)}`;
    }),
  );
  list(
    'guards',
    (verdicts ?? [])
      .filter((v) => v.effect !== 'passed')
      .map((v) => `${clean(v.guard)} ${v.effect}${v.sentence ? `: ${clean(v.sentence)}` : ''}`),
  );
  list(
    'detail',
    Object.entries(detail ?? {})
      .filter(([name]) => !SAID.includes(name))
      .map(([name, value]) => `${clean(name)}: ${detailValue(name, value)}`),
  );
  return lines;
}

/** What the sentence says already. */
const SAID: readonly string[] = ['over', 'heldBack'];

/** The end of a hold as a person reads it; the rest as it is stored. */
function detailValue(name: string, value: unknown): string {
  if (name !== 'until' || typeof value !== 'number') return clean(JSON.stringify(value));
  return value === -1 ? 'a person ends it' : localTime(value);
}
