/** The dashboard as files to serve: one script, one style sheet, hashed names, nothing from elsewhere. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/** What is bundled into the script; their licences go with it. */
const BUNDLED = ['preact', 'uplot'];

/**
 * Writes `page.html` and `assets/` into `into`.
 * @returns {Promise<void>} throws with esbuild's own words when a source is wrong
 */
export async function buildDashboard(root, into) {
  // Loaded here: `npm start` of a built package needs no bundler.
  const { build } = await import('esbuild');
  const source = join(root, 'src/dashboard');
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      main: join(source, 'main.tsx'),
      theme: join(source, 'shell/theme-early.ts'),
      style: join(source, 'style/index.css'),
      icon: join(source, 'icon.svg'),
    },
    outdir: into,
    entryNames: 'assets/[name]-[hash]',
    assetNames: 'assets/[name]-[hash]',
    loader: { '.svg': 'copy' },
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    sourcemap: false,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    tsconfig: join(source, 'tsconfig.json'),
  });
  const written = Object.keys(metafile.outputs).map((path) =>
    relative(into, join(root, path)).split('\\').join('/'),
  );
  const named = (name, ending) =>
    written.find((path) => basename(path).startsWith(`${name}-`) && path.endsWith(ending));
  const names = {
    script: named('main', '.js'),
    theme: named('theme', '.js'),
    style: named('style', '.css'),
    icon: named('icon', '.svg'),
  };
  const page = readFileSync(join(source, 'page.html'), 'utf8').replace(
    /\{\{(\w+)\}\}/g,
    (_all, name) => names[name],
  );
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, 'index.html'), page);
  writeFileSync(join(into, 'assets/licences.txt'), licences(root));
}

function licences(root) {
  return BUNDLED.map((name) => {
    const text = readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8');
    return `${name}\n\n${text}`;
  }).join('\n\n');
}
