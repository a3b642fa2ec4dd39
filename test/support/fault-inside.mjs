/**
 * Loaded before a daemon's own code (`--import`), it does what its starter sends: `{ shiftMs }` sets its wall clock off,
 * `{ blockMs }` blocks its event loop.
 */
const real = Date.now;
let shift = 0;
Date.now = () => real() + shift;
process.on('message', ({ shiftMs = 0, blockMs = 0 }) => {
  shift = shiftMs;
  if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
});
process.channel?.unref();
