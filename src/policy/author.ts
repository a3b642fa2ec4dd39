/** What `import … from 'flyball'` gives inside a policy file: only the words of a policy, so that it loads fast. Stage: policy. */
export {
  adaptive,
  env,
  fixed,
  postgres,
  step,
  telemetry,
  upstreamErrors,
} from './builders.js';
export { definePolicy } from './define.js';
