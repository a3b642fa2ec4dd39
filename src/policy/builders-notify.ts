/** The words for where a policy's alerts go: `notify: [slack({ url: env('SLACK_URL') })]`. Stage: policy. */
import type { DestinationInput } from './notify-schema.js';

type Options<To extends DestinationInput['to']> = Omit<Extract<DestinationInput, { to: To }>, 'to'>;

/** A POST of plain JSON to an address of yours; with `secret` signed as Standard Webhooks says. */
export function webhook(options: Options<'webhook'>) {
  return { to: 'webhook', ...options } as const;
}

/** Alerts that begin and end in a Prometheus Alertmanager, which routes them on. */
export function alertmanager(options: Options<'alertmanager'>) {
  return { to: 'alertmanager', ...options } as const;
}

/** A mail through an SMTP server; needs the npm package `nodemailer`. */
export function email(options: Options<'email'>) {
  return { to: 'email', ...options } as const;
}

/** A Slack incoming webhook. */
export function slack(options: Options<'slack'>) {
  return { to: 'slack', ...options } as const;
}

/** A custom bot of a Feishu or Lark group. */
export function feishu(options: Options<'feishu'>) {
  return { to: 'feishu', ...options } as const;
}

/** A custom robot of a DingTalk group. */
export function dingtalk(options: Options<'dingtalk'>) {
  return { to: 'dingtalk', ...options } as const;
}

/** A group robot of WeCom. */
export function wecom(options: Options<'wecom'>) {
  return { to: 'wecom', ...options } as const;
}

/** Incidents of PagerDuty, by Events API v2: triggered, and resolved when it is over. */
export function pagerduty(options: Options<'pagerduty'>) {
  return { to: 'pagerduty', ...options } as const;
}
