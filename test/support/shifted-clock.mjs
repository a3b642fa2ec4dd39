/** Loaded before a process's own code (`--import`): its wall clock is off by the ms that a file says, now. */
import { readFileSync } from 'node:fs';

const real = Date.now;
Date.now = () => real() + Number(readFileSync(process.env.CLOCK_SHIFT_FILE, 'utf8'));
