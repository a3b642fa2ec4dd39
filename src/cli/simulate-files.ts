/** What `flyball simulate` reads and writes beside the policy: the history to fit the plant to, the page and the pictures. Stage: cli. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FlyballError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import type { Plant } from '../sim/compare.js';
import { fitPlant } from '../sim/fit.js';
import { parseHistory } from '../sim/history.js';
import { type PageInput, simulationPage } from '../sim/page.js';
import { pictureSvg } from '../sim/picture.js';
import { secondsAxis } from '../sim/plot.js';
import { plotsOf } from '../sim/plots.js';
import { number } from './text.js';

/** The plant that the history of the file gives. */
export function fittedPlant(path: string): Plant {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new FlyballError('FLYBALL_E_SIM_HISTORY', `${path} cannot be read (${code}).`);
  }
  const fit = fitPlant(parseHistory(text, path));
  if (fit.kind === 'refused') {
    throw new FlyballError('FLYBALL_E_SIM_FIT', `${path} gives no plant: ${fit.message}`);
  }
  const { service, capacityPerSecond } = fit;
  return { service, capacityPerSecond, isDefault: false, fit };
}

/** Whose plant it is, what it carries, and how well it is known. */
export function plantLine({ service, capacityPerSecond, isDefault, fit }: Plant): string {
  const leisureMs = service.app.meanMs + (service.pool?.hold.meanMs ?? 0) + service.upstreamMs;
  const carries = `it carries ${number(round(capacityPerSecond))}/s, answers in ${number(round(leisureMs))} ms at leisure`;
  if (isDefault || fit === undefined) {
    return `plant: default, not yours (${carries}; --fit <history> fits it to your service)`;
  }
  const [, most] = fit.seen.perSecond;
  return (
    `plant: fitted to ${fit.points} points (${carries}; R² ${fit.quality.toFixed(2)}; ` +
    `up to ${number(round(most))}/s were seen, beyond is a guess)`
  );
}

export function writePage(path: string, input: Omit<PageInput, 'plantSays'>): void {
  const page = simulationPage({ ...input, plantSays: plantLine(input.plant) });
  written(path, () => writeFileSync(path, page));
}

/** One file a scenario, of its first seed; returns their names. */
export function writePictures(
  folder: string,
  { policy, plant, results }: Pick<PageInput, 'policy' | 'plant' | 'results'>,
): string[] {
  written(folder, () => makeFolder(folder));
  return results.map(([first]) => {
    const { scenario } = first!;
    const says = `${policy.limiter.name}, ${scenario.name}: ${scenario.says}`;
    const plots = plotsOf(policy, plant, first!);
    const path = join(folder, `${scenario.name}.svg`);
    const picture = pictureSvg({ says, plots, axis: secondsAxis(scenario.durationS) });
    written(path, () => writeFileSync(path, picture));
    return path;
  });
}

function written(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === undefined) throw error;
    throw new FlyballError('FLYBALL_E_SIM_PAGE', `${path} cannot be written (${code}).`);
  }
}

function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(2));
}
