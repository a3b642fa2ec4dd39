/** What `import … from 'flyball'` gives inside a policy file: only the words of a policy, so that it loads fast. Stage: policy. */
export {
  adaptive,
  aimd,
  env,
  fixed,
  pi,
  step,
  telemetry,
  upstreamErrors,
} from './builders.js';
export {
  alertmanager,
  dingtalk,
  email,
  feishu,
  pagerduty,
  slack,
  webhook,
  wecom,
} from './builders-notify.js';
export { custom, mysql, postgres, prometheus, scrape } from './builders-sources.js';
export { definePolicy } from './define.js';
export { downstream } from './downstream.js';
export { upstream } from './upstream.js';
