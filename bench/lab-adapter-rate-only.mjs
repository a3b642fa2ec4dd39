/** The same adapter for a caller whose completions nobody sees: no in-flight cap is enforced, the rate alone moves. */
import { createController } from './lab-adapter.mjs';

export default (options) => createController(options, { rateOnly: true });
