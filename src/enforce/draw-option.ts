/** The `draw` option: ask Redis for each take, or draw tokens in blocks. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';

export type Draw = 'each' | 'block';

export function checkDraw(draw: unknown = 'each'): Draw {
  if (draw === 'each' || draw === 'block') return draw;
  throw new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `draw is ${show(draw)}. Use 'each' or 'block'.`,
  );
}
