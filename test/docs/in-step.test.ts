/** Docs in step with code, both ways: settings, error codes, metrics; links lead somewhere. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { REASONS } from '../../src/decide/reasons.js';
import { collectMetrics } from '../../src/enforce/metrics.js';
import { limiterSchema } from '../../src/policy/limiter-schema.js';
import { policySchema } from '../../src/policy/schema.js';
import { createMetrics } from '../../src/report/metrics.js';
import { filesUnder, lua, ROOT, read, sources } from '../support/source-tree.js';

const code = [...sources, ...lua];
const found = (files: { text: string }[], pattern: RegExp) => [
  ...new Set(files.flatMap(({ text }) => text.match(pattern) ?? [])),
];
const sorted = (names: Iterable<string>) => [...new Set(names)].sort();
const doc = (path: string) => [{ text: read(path) }];

describe('each is documented, and nothing else is', () => {
  test('settings, in docs/configuration.md', () => {
    const variable = /\bFLYBALL_(?![EW]_)[A-Z][A-Z_]*[A-Z]\b/g;
    const deploy = [...filesUnder('deploy', /./), ...filesUnder('Dockerfile', /./)];
    const scripts = filesUnder('scripts', /\.(mjs|json|sh)$/);
    const used = found([...code, ...deploy, ...scripts], variable);
    expect(sorted(found(doc('docs/configuration.md'), variable))).toEqual(sorted(used));
  });

  test('error and warning codes, in docs/errors.md', () => {
    const errorCode = /\bFLYBALL_[EW]_[A-Z_]*[A-Z]\b(?!_)/g;
    expect(sorted(found(doc('docs/errors.md'), errorCode))).toEqual(sorted(found(code, errorCode)));
  });

  test('metrics, in docs/metrics.md', async () => {
    const services = new Registry();
    collectMetrics([], { register: services });
    const daemons = createMetrics('docs').registry;
    const all = [daemons, services].map((registry) => registry.getMetricsAsJSON());
    const own = (await Promise.all(all))
      .flat()
      .map((metric) => metric.name)
      .filter((name) => name.startsWith('flyball_'));
    expect(own.length).toBeGreaterThan(20);
    const documented = found(doc('docs/metrics.md'), /\bflyball_[a-z_]+[a-z]\b/g);
    expect(sorted(documented)).toEqual(sorted(own));
  });
});

test('reason codes of decisions, in the table of docs/control.md, and nothing else', () => {
  const table = read('docs/control.md').split('\n## Reason codes\n')[1]!.split('\n## ')[0]!;
  const rows = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell]) => cell!.split(', '));
  const codes = rows.map((code) => code.replaceAll('`', ''));
  expect(codes.length).toBeGreaterThan(25);
  expect(sorted(codes)).toEqual(sorted(Object.keys(REASONS)));
  expect(codes).toHaveLength(new Set(codes).size);
});

test('every field of a policy and of its limiter stands in the guide that lists them', () => {
  const guide = read('docs/guides/write-a-policy.md');
  const fields = [...Object.keys(policySchema.shape), ...Object.keys(limiterSchema.shape)];
  expect(fields.length).toBeGreaterThan(25);
  const named = (field: string) => new RegExp(`\`(limiter\\.)?${field}\\b`).test(guide);
  expect(fields.filter((field) => !named(field))).toEqual([]);
});

test('every link between documents leads to a file', () => {
  const documents = ['README', 'ARCHITECTURE', 'CONTRIBUTING', 'CHANGELOG', 'SECURITY']
    .map((name) => ({ path: `${name}.md`, text: read(`${name}.md`) }))
    .concat(['docs', 'deploy', 'examples'].flatMap((folder) => filesUnder(folder, /\.md$/)));
  const dead = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map(([, target]) => target!)
      .filter((target) => !existsSync(join(ROOT, dirname(path), target)))
      .map((target) => `${path} → ${target}`),
  );
  expect(dead).toEqual([]);
});

test('the index of decisions names each of them', () => {
  const pages = filesUnder('docs/adr', /\d{4}-.*\.md$/).map(({ path }) => path.split('/').at(-1)!);
  const listed = [...read('docs/adr/README.md').matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(
    ([, file]) => file!,
  );
  expect(sorted(listed)).toEqual(sorted(pages));
});

test('every guide is found from the README', () => {
  const guides = filesUnder('docs', /\.md$/)
    .map(({ path }) => path)
    .filter((path) => /^docs\/(guides\/)?[a-z-]+\.md$/.test(path));
  expect(guides.length).toBeGreaterThan(30);
  expect(guides.filter((path) => !read('README.md').includes(`](${path})`))).toEqual([]);
});

test('each fault that a test is named for is explained in CONTRIBUTING, and no other', () => {
  const named = filesUnder('test', /\.(ts|mjs|js|py)$/).flatMap(
    ({ text }) => text.match(/\bC\d\d\b/g) ?? [],
  );
  const rows = read('CONTRIBUTING.md').matchAll(/^\| (C\d\d) \| .{20,} \|$/gm);
  const listed = [...rows].map(([, id]) => id!);
  expect(listed).toEqual(sorted(listed));
  expect(listed).toEqual(sorted(named));
});

test('the commands that CONTRIBUTING and README name exist', () => {
  const { scripts } = JSON.parse(read('package.json'));
  const named = [
    ...`${read('README.md')}${read('CONTRIBUTING.md')}`.matchAll(/npm (?:run )?([a-z]+)/g),
  ]
    .map(([, name]) => name!)
    .filter((name) => !['install', 'ci', 'pack', 'packages', 'and'].includes(name));
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});
