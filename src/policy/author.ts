/** What `import … from 'flyball'` gives inside a policy file: only the words of a policy, so that it loads fast. Stage: policy. */
export {
  adaptive,
  aimd,
  env,
  fixed,
  pi,
  postgres,
  step,
  telemetry,
  upstreamErrors,
} from './builders.js';
export { definePolicy } from './define.js';
export { downstream } from './downstream.js';
