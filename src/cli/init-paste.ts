/** The code to paste into a service, for its framework and its kind of modules. Pure. Stage: cli. */
import type { Framework, Surroundings } from './init-surroundings.js';

export interface PasteFor {
  name: string;
  rate: number;
  capacity: number;
  inFlightMax: number | null;
  framework: Framework;
  modules: Surroundings['modules'];
}

/** Where the adapter of a framework is, and how it is bound; the guide has the options. */
const BOUND: Readonly<Record<Framework, { from: string; lines: string }>> = {
  express: { from: 'flyball/express', lines: 'app.use(flyball(limiter)); // before the routes' },
  fastify: {
    from: 'flyball/fastify',
    lines: 'await app.register(flyball, { limiter }); // before the routes',
  },
  hono: { from: 'flyball/hono', lines: 'app.use(flyball(limiter)); // before the routes' },
  koa: {
    from: 'flyball/http',
    lines: `const guard = flyball(limiter);
app.use(async (ctx, next) => { // the first middleware
  if (await guard(ctx.req, ctx.res)) return next();
  ctx.respond = false; // a denial is answered already
});`,
  },
  nest: {
    from: 'flyball/http',
    lines: `const guard = flyball(limiter);
app.use((req, res, next) => guard(req, res).then((go) => go && next(), next)); // before app.listen`,
  },
  http: {
    from: 'flyball/http',
    lines: `const guard = flyball(limiter);
const server = createServer(guard.wrap((req, res) => res.end('hello'))); // your handler inside`,
  },
};

export function pasteFor(options: PasteFor): string {
  const { name, rate, capacity, inFlightMax, framework, modules } = options;
  const { from, lines } = BOUND[framework];
  const cap = inFlightMax === null ? '' : `, inFlightMax: ${inFlightMax}`;
  const server = framework === 'http' ? [`import { createServer } from 'node:http';`] : [];
  const imports = [
    ...server,
    `import { createLimiter } from 'flyball';`,
    `import { flyball } from '${from}';`,
  ];
  const head = modules === 'esm' ? imports : imports.map(required);
  return `${head.join('\n')}

// Used until Redis answers with the numbers in force; then those of the policy hold, without a restart.
const limiter = createLimiter({ name: '${name}', rate: ${rate}, capacity: ${capacity}${cap} });
${modules === 'commonjs' ? lines.replace(/^await (.*);( \/\/.*)$/, '$1;$2') : lines}
process.once('SIGTERM', () => limiter.close()); // after the last answer
`;
}

/** `import { a } from 'b'` as CommonJS has it; Node.js ≥ 20.19 requires ES modules. */
function required(line: string): string {
  return line.replace(/^import (.*) from ('.*');$/, 'const $1 = require($2);');
}
