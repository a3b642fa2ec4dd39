import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../src/enforce', import.meta.url));

test('a user needs no framework, nor its types, unless he uses it', () => {
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  expect(files.length).toBeGreaterThan(20);
  for (const file of files) {
    expect(readFileSync(`${FOLDER}/${file}`, 'utf8'), file).not.toMatch(
      /from '(@types\/)?(express|fastify|@?hono|koa|@nestjs)/,
    );
  }
});
