/** Routes of policies: which requests they name, which of several is meant, and no spelling of a path that leads round. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRoutes } from '../../src/enforce/route-table.js';
import { parseRoute } from '../../src/redis/route.js';

const find = (routes: string[], method: string, target: string, caseSensitive = false) =>
  compileRoutes(new Map([['pay', routes]]), caseSensitive).table.find(method, target)?.route ??
  null;

describe('what a route names', () => {
  test.each([
    ['POST /api/pay/**', 'POST', '/api/pay/card/42', true],
    ['POST /api/pay/**', 'POST', '/api/pay', true],
    ['POST /api/pay/**', 'GET', '/api/pay', false],
    ['POST /api/pay/**', 'POST', '/api/payments', false],
    ['/api/pay', 'DELETE', '/api/pay', true],
    ['* /api/pay', 'PATCH', '/api/pay', true],
    ['GET /users/:id', 'GET', '/users/42', true],
    ['GET /users/:id', 'GET', '/users', false],
    ['GET /users/:id', 'GET', '/users/42/orders', false],
    ['GET /users/*/orders', 'GET', '/users/42/orders', true],
    ['GET /users/*/orders', 'GET', '/users/42/baskets', false],
    ['/api/**/export', 'GET', '/api/export', true],
    ['/api/**/export', 'GET', '/api/a/b/c/export', true],
    ['/api/**/export', 'GET', '/api/export/x', false],
    ['/', 'GET', '/', true],
    ['/', 'GET', '/x', false],
    ['/**', 'GET', '/', true],
    // GET routes answer HEAD in every framework: it must not be the way round.
    ['GET /users/:id', 'HEAD', '/users/42', true],
    ['GET /a', 'OPTIONS', '/a', false],
    ['/a', 'GET', 'http://shop.example/a?x=1', true],
    ['/a', 'GET', 'http://shop.example', false],
    ['/**', 'OPTIONS', '*', false],
  ])('%s names %s %s: %s', (route, method, target, named) => {
    expect(find([route], method, target)).toBe(named ? route : null);
  });
});

describe('which of several is meant: the most exact', () => {
  const routes = ['/**', '/api/**', 'POST /api/**', '/api/:id', '/api/pay', 'GET /api/pay'];
  test.each([
    ['GET', '/api/pay', 'GET /api/pay'],
    ['POST', '/api/pay', '/api/pay'],
    ['POST', '/api/card', '/api/:id'],
    ['POST', '/api/card/1', 'POST /api/**'],
    ['GET', '/api/card/1', '/api/**'],
    ['GET', '/', '/**'],
  ])('%s %s falls under %s, in whatever order they stand', (method, target, meant) => {
    expect(find(routes, method, target)).toBe(meant);
    expect(find([...routes].reverse(), method, target)).toBe(meant);
  });

  test('segment by segment: text, then one, then any number', () => {
    expect(find(['/a/*/c', '/a/b/**'], 'GET', '/a/b/c')).toBe('/a/b/**');
    expect(find(['/**/c', '/*/b/c'], 'GET', '/a/b/c')).toBe('/*/b/c');
    expect(find(['HEAD /a', 'GET /a'], 'HEAD', '/a')).toBe('HEAD /a');
  });

  test('one limiter for a request: of two that name it alike the first by name, and it is said', () => {
    const { table, shared } = compileRoutes(
      new Map([
        ['zebra', ['GET /api/:id']],
        ['apple', ['GET /api/*', 'GET /api/**']],
      ]),
    );
    expect(table.find('GET', '/api/1')).toMatchObject({ limiter: 'apple', route: 'GET /api/*' });
    expect(shared).toEqual([expect.stringContaining('apple has it, zebra too')]);
    expect(table.entries).toHaveLength(2);
  });
});

describe('no spelling of a path leads round a limit', () => {
  test.each([
    '/api/pay/',
    '/api//pay',
    '//api/pay',
    '/API/Pay',
    '/api/p%61y',
    '/%61%50I/pay',
    '/api/pay?x=/other',
    '/api/pay#x',
    '/api/./pay',
    '/api/x/../pay',
    '/api/x/%2e%2E/pay',
    '/../../api/pay',
    '/api\\pay',
    'http://any.example/api/pay',
    'HTTP://any.example//api/pay/',
  ])('%s is /api/pay', (target) => {
    expect(find(['/api/pay'], 'GET', target)).toBe('/api/pay');
  });

  test('what the framework sees comes first: dots lead out of no route', () => {
    const routes = ['/open/**', '/loose'];
    expect(find(routes, 'GET', '/open/../loose')).toBe('/open/**');
    expect(find(['/loose'], 'GET', '/open/../loose')).toBe('/loose');
  });

  test('an encoded slash stays in its segment', () => {
    expect(find(['/files/:name', '/files/a/b'], 'GET', '/files/a%2Fb')).toBe('/files/:name');
    expect(find(['/files/a%2Fb', '/files/:name'], 'GET', '/files/a%2fb')).toBe('/files/a%2Fb');
  });

  test('a wrong encoding is text like any other', () => {
    expect(find(['/a/*'], 'GET', '/a/%zz')).toBe('/a/*');
    expect(find(['/a/%zz'], 'GET', '/a/%ZZ')).toBe('/a/%zz');
    expect(find(['/caf%C3%A9'], 'GET', '/CAF%c3%89')).toBe('/caf%C3%A9');
  });

  test('caseSensitive: two spellings are two paths, and only then', () => {
    expect(find(['/Pay'], 'GET', '/pay', true)).toBeNull();
    expect(find(['/Pay'], 'GET', '/Pay', true)).toBe('/Pay');
  });

  test('any spelling of the same segments finds the same route', () => {
    const segment = fc.stringMatching(/^[a-z0-9]{1,6}$/);
    const spelt = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => text.toUpperCase(),
      (text) => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`,
      (text) => `/${text}`,
      (text) => `./${text}`,
      (text) => `x/../${text}`,
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(segment, spelt), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (parts, slash) => {
          const plain = `/${parts.map(([text]) => text).join('/')}`;
          const odd = `/${parts.map(([text, spell]) => spell(text)).join('/')}${slash ? '/' : ''}`;
          expect(find([plain, '/zz/**'], 'GET', odd)).toBe(plain);
        },
      ),
    );
  });

  test('thousands of segments and routes cost no more than they are long', () => {
    const many = Array.from({ length: 2_000 }, (_, i) => `/**/x${i}/y`);
    const { table } = compileRoutes(new Map([['a', many]]));
    const target = `/${'a/'.repeat(8_000)}`;
    expect(table.find('GET', target)).toBeNull();
    expect(table.find('GET', `${target}x1999/y`)?.route).toBe('/**/x1999/y');
  });
});

describe('faults of a route', () => {
  test.each([
    ['pay', 'it is no route'],
    ['post /pay', 'it is no route'],
    ['/a b', 'it is no route'],
    ['/a?b=1', 'no query'],
    ['/a#b', 'no query'],
    ['/a/**/b/**', "more than one '**'"],
    ['/a//b', 'empty segment'],
    ['/a/../b', "'.' or '..'"],
    ['/a/*.pdf', "neither text nor a wildcard. Write '*'"],
    ['/users/{id}', "Write '*' or ':id'"],
    ['/users/:', 'Write :id'],
    [`/${'a/'.repeat(33)}`, 'more than 32 segments'],
    [`/${'a'.repeat(256)}`, 'more than 256 characters'],
  ])('%s: %s', (route, fault) => {
    expect(parseRoute(route)).toContain(fault);
  });

  test('in params, where anything may have been written: left out, the others work', () => {
    const routes = ['/a//b', '/ok', 7 as unknown as string];
    const { table, faults } = compileRoutes(new Map([['x', routes]]));
    expect(faults).toHaveLength(2);
    expect(table.find('GET', '/ok')?.limiter).toBe('x');
  });
});
