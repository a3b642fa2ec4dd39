/** Runs before the first paint, so that a chosen theme never flashes the other. Stage: dashboard. */
import { applyTheme, storedTheme } from './theme.js';

applyTheme(storedTheme());
