/**
 * Loaded before a daemon's own code (`--import`): on SIGUSR2 it does what the file FAULT_ORDERS says, `{ shiftMs }` sets
 * its wall clock off, `{ blockMs }` blocks its event loop.
 */
import { readFileSync } from 'node:fs';

const real = Date.now;
let shift = 0;
Date.now = () => real() + shift;
process.on('SIGUSR2', () => {
  const { shiftMs = 0, blockMs = 0 } = JSON.parse(readFileSync(process.env.FAULT_ORDERS, 'utf8'));
  shift = shiftMs;
  if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
});
