/** The rules of the house (ARCHITECTURE.md): who may import whom, where keys and writes live, the shape of a file. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  exportedNames,
  filesUnder,
  type Import,
  imports,
  importsOf,
  linesWith,
  lua,
  ROOT,
  read,
  roomOf,
  sources,
} from '../support/source-tree.js';

/** What a browser loads of the dashboard. */
const DASHBOARD = ['src/dashboard/main.tsx', 'src/dashboard/shell/theme-early.ts'];
const scripts = filesUnder('scripts', /\.(mjs|sh)$/);
const written = [
  ...sources,
  ...lua,
  ...scripts,
  ...['policies', 'examples', 'bench'].flatMap((folder) => filesUnder(folder, /\.(ts|mts|mjs)$/)),
];
const tests = filesUnder('test', /\.(ts|mjs)$/);
const shown = (list: Import[]) => list.map((one) => `${one.from} → ${one.to}`);

test('the walk finds the house, and reads every kind of import', () => {
  expect(sources.length).toBeGreaterThan(60);
  expect(lua.length).toBeGreaterThan(5);
  const text = [
    "import a, { b } from './x.js';",
    "import type { C } from '../errors.js';",
    "import {\n  type D,\n  e as f,\n} from 'pkg';",
    "export { type G } from './g.js';",
    "const h = await import('pg');",
  ].join('\n');
  expect(importsOf({ path: 'src/redis/y.ts', text })).toMatchObject([
    { to: 'src/redis/x.ts', own: true, typeOnly: false, names: ['a', 'b'] },
    { to: 'src/errors.ts', own: true, typeOnly: true, names: ['C'] },
    { to: 'pkg', own: false, typeOnly: false, names: ['D', 'e'] },
    { to: 'src/redis/g.ts', typeOnly: true, names: ['G'] },
    { to: 'pg', typeOnly: false },
  ]);
});

describe('imports', () => {
  const PURE = ['estimate', 'decide', 'guard', 'tune', 'sim'];
  const isPure = (path: string) =>
    PURE.includes(roomOf(path)) ||
    /^src\/policy\/(schema|plan|profile|person-bounds|windows|local-time|kinds)\.ts$/.test(path);
  const PURE_PACKAGES = ['zod', 'simple-statistics'];
  /** Plain types, constants and arithmetic that pure rooms share with others; nothing here touches anything. */
  const PLAIN = ['src/errors.ts', 'src/histogram.ts', 'src/markup.ts', 'src/sense/readings.ts'];

  test('pure rooms import only each other, errors, plain types, zod and simple-statistics', () => {
    const wrong = imports.filter(({ from, to, own, typeOnly }) => {
      if (!isPure(from)) return false;
      if (!own) return !PURE_PACKAGES.includes(to);
      const policyNeighbour = roomOf(from) === 'policy' && roomOf(to) === 'policy';
      return !(isPure(to) || PLAIN.includes(to) || typeOnly || policyNeighbour);
    });
    expect(shown(wrong)).toEqual([]);
  });

  test('what pure rooms reach, through any number of imports, is pure too', () => {
    const reached = new Set(sources.map((file) => file.path).filter(isPure));
    for (const path of reached) {
      for (const one of imports) {
        if (one.from === path && one.own && !one.typeOnly) reached.add(one.to);
      }
    }
    const impure = imports.filter(
      ({ from, to, own, typeOnly }) =>
        reached.has(from) && !own && !typeOnly && !PURE_PACKAGES.includes(to),
    );
    expect(shown(impure)).toEqual([]);
    const files = sources.filter((file) => reached.has(file.path));
    const code = files.map(({ path, text }) => ({ path, text: withoutComments(text) }));
    const clocks = /\bDate\.now|new Date\(\)|Math\.random|\bprocess\.|performance\.now|setTimeout/;
    expect(linesWith(code, clocks)).toEqual([]);
  });

  test('the hot path knows nothing of the autopilot', () => {
    const rooms = [
      'sense',
      'decide',
      'guard',
      'actuate',
      'daemon',
      'cli',
      'demo',
      'report',
      'estimate',
    ];
    const wrong = imports.filter(
      ({ from, to, own, typeOnly }) =>
        roomOf(from) === 'enforce' &&
        own &&
        rooms.includes(roomOf(to)) &&
        !typeOnly &&
        !PLAIN.includes(to),
    );
    expect(shown(wrong)).toEqual([]);
  });

  test('the dashboard runs in a browser: of other rooms it takes types, and plain code for words and episodes', () => {
    const shared = /^src\/(view\/(text|signal-unit)|audit\/episodes)\.ts$/;
    const wrong = imports.filter(
      ({ from, to, own, typeOnly }) =>
        roomOf(from) === 'dashboard' &&
        !typeOnly &&
        (own
          ? roomOf(to) !== 'dashboard' && !shared.test(to)
          : !/^(preact(\/hooks)?|uplot)$/.test(to)),
    );
    expect(shown(wrong)).toEqual([]);
  });

  test('nothing imports the edges: cli, demo, daemon and dashboard stand outermost', () => {
    const allowed: Record<string, string[]> = {
      dashboard: ['dashboard'],
      // The demo tells its story in the words of the CLI.
      cli: ['cli', 'demo'],
      demo: ['demo', 'cli'],
      daemon: ['daemon', 'cli', 'demo'],
    };
    const wrong = imports.filter(
      ({ from, to, own }) =>
        own && roomOf(to) in allowed && !allowed[roomOf(to)]!.includes(roomOf(from)),
    );
    expect(shown(wrong)).toEqual([]);
  });

  test('what carries audit logs away knows neither how limits are decided nor who enforces them', () => {
    const apart = ['sense', 'guard', 'enforce', 'daemon', 'cli', 'report'];
    const wrong = imports.filter(
      ({ from, to, own, typeOnly }) =>
        roomOf(from) === 'audit' && own && !typeOnly && apart.includes(roomOf(to)),
    );
    expect(shown(wrong)).toEqual([]);
  });

  test('only actuate calls the scripts that change what is in force', () => {
    const writers = ['actuate', 'heartbeat', 'lease', 'note'];
    const wrong = imports.filter(
      ({ from, to, typeOnly, names }) =>
        to === 'src/redis/scripts.ts' &&
        roomOf(from) !== 'actuate' &&
        !typeOnly &&
        names.some((name) => writers.includes(name)),
    );
    const overriding = imports.filter(
      ({ from, to, names }) =>
        to === 'src/redis/subject-override.ts' &&
        names.includes('overrideSubject') &&
        roomOf(from) !== 'actuate',
    );
    expect(shown([...wrong, ...overriding])).toEqual([]);
    // The doctor only looks whether the server has them.
    const readers = (path: string) =>
      roomOf(path) === 'redis' || path === 'src/cli/doctor-redis.ts';
    const generated = imports.filter(
      ({ from, to }) => to.endsWith('scripts.gen.ts') && !readers(from),
    );
    expect(shown(generated)).toEqual([]);
  });

  test('only sense reads databases; audit logs go to one', () => {
    const wrong = imports.filter(
      ({ from, to, typeOnly }) =>
        /^(pg|mysql2\/promise)$/.test(to) &&
        !typeOnly &&
        !['sense', 'demo'].includes(roomOf(from)) &&
        from !== 'src/audit/postgres-driver.ts',
    );
    expect(shown(wrong)).toEqual([]);
  });

  test('no circles', () => {
    const edges = new Map<string, string[]>();
    for (const { from, to, own, typeOnly } of imports) {
      if (own && !typeOnly) edges.set(from, [...(edges.get(from) ?? []), to]);
    }
    expect(circle(edges)).toBeNull();
    expect(
      circle(
        new Map([
          ['a', ['b']],
          ['b', ['c']],
          ['c', ['a']],
        ]),
      ),
    ).toEqual(['a', 'b', 'c', 'a']);
  });

  test('every file is reached from an entry', () => {
    const entries = [...packageEntries(), ...DASHBOARD];
    for (const entry of entries) expect(sources.map((file) => file.path)).toContain(entry);
    const reached = new Set(entries);
    for (const path of reached) {
      for (const one of imports) if (one.from === path && one.own) reached.add(one.to);
      // Files that run as a process or a worker of their own are named, not imported.
      const text = sources.find((file) => file.path === path)?.text ?? '';
      for (const { path: other } of sources) {
        const name = other.split('/').at(-1)!.replace(/\.ts$/, '.js');
        if (text.includes(`/${name}'`) || text.includes(`'${name}'`)) reached.add(other);
      }
    }
    expect(sources.map((file) => file.path).filter((path) => !reached.has(path))).toEqual([]);
  });
});

describe('keys and Lua', () => {
  test('only redis/keys.ts spells a key', () => {
    const others = sources
      .filter((file) => file.path !== 'src/redis/keys.ts')
      .map(({ path, text }) => ({ path, text: withoutComments(text) }));
    const key =
      /['"`]flyball:|\}:(params|audit|lease|state|status|policy|limiters|daemons|changes)\b/;
    expect(linesWith(others, key)).toEqual([]);
    expect(linesWith(lua, /['"]flyball:/)).toEqual([]);
  });

  test('Lua neither logs, nor lists keys, nor loops without a bound', () => {
    const code = lua.map(({ path, text }) => ({ path, text: text.replace(/--.*$/gm, '') }));
    expect(linesWith(code, /redis\.log|call\(\s*['"]KEYS|\bwhile\b|\brepeat\b/)).toEqual([]);
  });

  test('the generated module is what the Lua files give', () => {
    const copy = mkdtempSync(join(tmpdir(), 'flyball-lua-'));
    try {
      for (const folder of ['lua', 'src/redis']) {
        cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
      }
      cpSync(join(ROOT, 'scripts'), join(copy, 'scripts'), { recursive: true });
      copyFileSync(join(ROOT, 'package.json'), join(copy, 'package.json'));
      rmSync(join(copy, 'src/redis/scripts.gen.ts'));
      const run = spawnSync(process.execPath, [join(copy, 'scripts/build-lua.mjs')]);
      expect(run.status).toBe(0);
      const fresh = readFileSync(join(copy, 'src/redis/scripts.gen.ts'), 'utf8');
      expect(read('src/redis/scripts.gen.ts')).toBe(fresh);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
});

describe('the shape of a file', () => {
  const lengths = (files: typeof written) =>
    files.map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }));

  test('at most 250 lines, the median at most 120', () => {
    expect(lengths(written).filter(({ lines }) => lines > 250)).toEqual([]);
    const sorted = lengths(sources)
      .map(({ lines }) => lines)
      .sort((a, b) => a - b);
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThanOrEqual(120);
  });

  test('at most 120 columns, strings, patterns and the opening sentence aside', () => {
    const long = [...written, ...tests].flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, i) => {
        const most = i === 0 ? 150 : 120;
        const withString = /(['"`]).{50,}\1/.test(line) || /^[^'"`]*`[^`]{50,}$/.test(line);
        const isPattern = /^\s*\/.{50,}\/[a-z]*,?$/.test(line);
        return line.length > most && !withString && !isPattern ? [`${path}:${i + 1}`] : [];
      }),
    );
    expect(long).toEqual([]);
  });

  test('folders lie at most two deep below src', () => {
    expect(sources.map((file) => file.path).filter((path) => path.split('/').length > 4)).toEqual(
      [],
    );
  });

  test('a source file opens with its purpose, and says its stage', () => {
    const wrong = sources.filter(({ text }) => {
      const opening = /^(?:#![^\n]*\n)?\/\*\*[\s\S]*?\*\//.exec(text)?.[0];
      return !opening || !/Stages?: |All stages|Stage of |stages?\./.test(opening);
    });
    expect(wrong.map((file) => file.path)).toEqual([]);
    const others = [...lua, ...scripts].filter(
      ({ text }) => !/^(#!.*\n)?(--|\/\/|\/\*\*|#) ?/.test(text),
    );
    expect(others.map((file) => file.path)).toEqual([]);
  });

  test('nothing is left for later, and no test is skipped or alone', () => {
    // Spelled in halves, so that this file does not find itself.
    const marks = ['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|');
    expect(linesWith([...written, ...tests], new RegExp(`\\b(${marks})\\b`))).toEqual([]);
    expect(linesWith(tests, /\b(test|it|describe)\.(skip|only|todo|skipIf|runIf)\b/)).toEqual([]);
  });

  test('public names use our words', () => {
    const foreign = /burst|points|weight|throttle|concurrency|tuner|undo/i;
    const entries = new Set(packageEntries());
    const names = imports
      .filter(({ from, own }) => entries.has(from) && own)
      .flatMap((one) => one.names)
      .concat(
        sources.filter(({ path }) => entries.has(path)).flatMap(({ text }) => exportedNames(text)),
      )
      .filter((name) => foreign.test(name));
    expect(names).toEqual([]);
  });
});

/** The source files that `exports` and `bin` of package.json lead to. */
function packageEntries(): string[] {
  const pack = JSON.parse(read('package.json'));
  const targets = Object.values(pack.exports).map(
    (entry) => (entry as { default?: string }).default ?? '',
  );
  return [...targets, pack.bin.flyball]
    .filter((target) => /^(\.\/)?dist\//.test(target))
    .map((target) => target.replace(/^(\.\/)?dist\//, 'src/').replace(/\.js$/, '.ts'));
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
}

/** A circle among the edges, or null. */
function circle(edges: Map<string, string[]>): string[] | null {
  const done = new Set<string>();
  const visit = (node: string, path: string[]): string[] | null => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (done.has(node)) return null;
    for (const next of edges.get(node) ?? []) {
      const found = visit(next, [...path, node]);
      if (found) return found;
    }
    done.add(node);
    return null;
  };
  for (const node of edges.keys()) {
    const found = visit(node, []);
    if (found) return found;
  }
  return null;
}
