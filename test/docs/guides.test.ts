/** The policies and pictures of the guides: each policy is sound as it stands there, each picture is shown and reads anywhere. */
import { expect, test } from 'vitest';
import * as author from '../../src/policy/author.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { filesUnder, read } from '../support/source-tree.js';

const documents = [{ path: 'README.md', text: read('README.md') }, ...filesUnder('docs', /\.md$/)];
const MARKED = /<!-- policy: ([a-z-]+) -->\n```ts\n([\s\S]*?)```/g;

test('each policy that a guide marks as one is sound as it stands there', () => {
  const names: string[] = [];
  for (const { path, text } of documents) {
    for (const [, name, code] of text.matchAll(MARKED)) {
      const guide = path.split('/').at(-1)!.replace('.md', '');
      names.push(`${guide}: ${name}`);
      const { faults } = parsePolicy(written(code!), `${guide}-${name}.ts`);
      expect(faults ?? [], `${guide}: ${name}`).toEqual([]);
    }
  }
  for (const law of ['adaptive', 'rate-only', 'step', 'aimd', 'pi', 'fixed']) {
    expect(names).toContain(`choose-a-law: ${law}`);
  }
});

/** What the file exports: its words are those that a policy file gets, and no others. */
function written(code: string): unknown {
  const [, words] = /^import \{ ([^}]+) \} from 'flyball';\n/.exec(code) ?? [];
  const missing = words!.split(', ').filter((word) => !(word in author));
  expect(missing).toEqual([]);
  const body = code.replace(/^import .*\n/, '').replace('export default', 'return');
  return new Function(`{ ${words} }`, body)(author);
}

test('each picture in docs/images is shown somewhere, and brings a ground of its own', () => {
  const pictures = filesUnder('docs/images', /\.svg$/);
  expect(pictures.length).toBeGreaterThan(5);
  const shown = documents.map(({ text }) => text).join('\n');
  for (const { path, text } of pictures) {
    const name = path.split('/').at(-1)!;
    expect(shown, path).toContain(`images/${name}`);
    expect(text, path).toMatch(/<svg[^>]* (role="img"|aria-label)/);
    expect(text, path).toMatch(/<rect[^>]* (class="ground"|fill="#|width="\d)/);
    expect(text, path).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
  }
});
