/** The table of docs/guides/choose-a-law.md: what each law keeps, on the plant of the guide's first policy. For `plots.mjs`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SCENARIOS = ['surge', 'slow-database', 'retry-storm', 'day', 'scale-out'];
const POLICY = /<!-- policy: ([a-z-]+) -->\n```ts\n([\s\S]*?)```/g;

/** Every law of the guide, with the objective and bounds of its first policy. */
export async function lawFigures(root, tools) {
  const { load, parsed, withoutCompletions, contest, defaultPlant, named, seed } = tools;
  const guide = readFileSync(join(root, 'docs/guides/choose-a-law.md'), 'utf8');
  const folder = mkdtempSync(join(tmpdir(), 'flyball-figures-'));
  try {
    for (const [, name, code] of guide.matchAll(POLICY)) {
      writeFileSync(join(folder, `${name}.ts`), code);
    }
    const written = async (name) => (await load(join(folder, `${name}.ts`)))[0];
    const base = await written('adaptive');
    const under = async (name) => parsed({ ...base, control: (await written(name)).control });
    const contenders = [
      ['`adaptive()`', 'policy', base],
      ["`adaptive()`, `completions: 'none'`", 'policy', withoutCompletions(base)],
      ['`step()`', 'policy', await under('step')],
      ['`aimd()`', 'policy', await under('aimd')],
      ['`pi()`', 'policy', await under('pi')],
      ['`fixed()`', 'static', base],
      ['no limit', 'none', base],
    ];
    const plant = defaultPlant(base);
    const runs = SCENARIOS.map((name) => contest(base, plant, named(name), seed));
    const head = ['law', ...SCENARIOS, 'mean', 'changes a minute'];
    const rows = [head, head.map((_, i) => (i ? '--:' : '---'))];
    for (const [title, contender, of] of contenders) {
      const scores = runs.map((run) => run.run(contender, of).score);
      const mean = (get) => scores.reduce((sum, score) => sum + get(score), 0) / scores.length;
      const cells = [...scores.map(({ goodput }) => goodput), mean(({ goodput }) => goodput)];
      const changes = mean(({ changesPerMinute }) => changesPerMinute).toFixed(1);
      rows.push([title, ...cells.map((value) => value.toFixed(2)), changes]);
    }
    return rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
  } finally {
    rmSync(folder, { recursive: true });
  }
}
