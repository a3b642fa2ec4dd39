/** How each kind of destination wants an alert: address, headers, body, and what its answer means. One table. Stage: report. */
import type { Destination } from '../../policy/notify-schema.js';
import { type Alert, linesOf, plain, textOf, titleOf } from './alert.js';
import { chatSignature, urlSignature, webhookSignature } from './sign.js';

/** A destination with every reference to the environment resolved. */
export interface Target {
  to: Destination['to'];
  url: string;
  secret?: string;
  token?: string;
  from?: string;
  recipients?: string[];
}

export interface Message {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export interface Template {
  /** `id` is the same for each attempt at one message; `nowMs` is when it is sent. */
  message(alert: Alert, target: Target, id: string, nowMs: number): Message;
  /** Why an answer of status 2xx is a refusal all the same; null: it is none. */
  refusal?(text: string): string | null;
  /** It wants firing alerts again and again, or takes them for over. */
  repeats?: true;
  /** Most messages a minute where the policy does not say; `merges`: more are told as one line. */
  perMinute: number;
  merges: boolean;
}

/** What people read must not flood them; programs want each, and keep up. */
const PEOPLE = { perMinute: 10, merges: true } as const;
const PROGRAMS = { perMinute: 600, merges: false } as const;

/** An Alertmanager takes an alert that is not repeated within this for over. */
export const REPEAT_MS = 60_000;
const ALERTMANAGER_KEEPS_MS = 5 * 60_000;
const EVENT_LASTS_MS = 15 * 60_000;

const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue';
/** Longest that each of these accepts, in characters or bytes. */
const SUMMARY_LENGTH = 1024;
const WECOM_BYTES = 4000;

/** Mails go by SMTP: `email.ts`. */
export const EMAIL = PEOPLE;

export const TEMPLATES: Record<Exclude<Destination['to'], 'email'>, Template> = {
  webhook: {
    ...PROGRAMS,
    message(alert, target, id, nowMs) {
      const body = JSON.stringify({
        type: `flyball.${alert.kind}`,
        id,
        text: textOf(alert),
        ...alert,
      });
      const signed =
        target.secret === undefined ? {} : webhookSignature(target.secret, id, nowMs, body);
      return json(target.url, body, { 'webhook-id': id, ...signed });
    },
  },

  alertmanager: {
    ...PROGRAMS,
    message(alert, target, _id, nowMs) {
      const labels = {
        alertname: `Flyball_${alert.kind}`,
        severity:
          alert.severity === 'info' && alert.state === 'resolved' ? 'warning' : alert.severity,
        key: alert.key,
        ...(alert.limiter === null ? {} : { limiter: alert.limiter }),
        ...(alert.owner === null ? {} : { owner: plain(alert.owner) }),
      };
      const lasts = alert.state === 'event' ? EVENT_LASTS_MS : ALERTMANAGER_KEEPS_MS;
      const endsMs = alert.state === 'resolved' ? nowMs : nowMs + lasts;
      const annotations = { summary: titleOf(alert), ...Object.fromEntries(linesOf(alert)) };
      const [startsAt, endsAt] = [Math.min(alert.atMs, endsMs), endsMs].map((ms) =>
        new Date(ms).toISOString(),
      );
      const url = `${target.url.replace(/\/+$/, '')}/api/v2/alerts`;
      const headers: Record<string, string> =
        target.token === undefined ? {} : { authorization: `Bearer ${target.token}` };
      return json(url, JSON.stringify([{ labels, annotations, startsAt, endsAt }]), headers);
    },
    repeats: true,
  },

  slack: {
    ...PEOPLE,
    message(alert, target) {
      const lines = linesOf(alert).map(([label, text]) => `*${label}* ${slackText(text)}`);
      const sections = [`*${slackText(titleOf(alert))}*`, lines.join('\n')];
      const blocks = sections.map((text) => ({
        type: 'section',
        text: { type: 'mrkdwn', text: text.slice(0, 2900) },
      }));
      return json(target.url, JSON.stringify({ text: slackText(titleOf(alert)), blocks }));
    },
  },

  feishu: {
    ...PEOPLE,
    message(alert, target, _id, nowMs) {
      const seconds = Math.floor(nowMs / 1000);
      const signed =
        target.secret === undefined
          ? {}
          : { timestamp: String(seconds), sign: chatSignature(target.secret, seconds) };
      const content = { text: tagless(textOf(alert)) };
      return json(target.url, JSON.stringify({ ...signed, msg_type: 'text', content }));
    },
    refusal: codeRefusal('code', 'msg'),
  },

  dingtalk: {
    ...PEOPLE,
    message(alert, target, _id, nowMs) {
      const url =
        target.secret === undefined ? target.url : urlSignature(target.url, target.secret, nowMs);
      const text = tagless(textOf(alert));
      return json(url, JSON.stringify({ msgtype: 'text', text: { content: text } }));
    },
    refusal: codeRefusal('errcode', 'errmsg'),
  },

  wecom: {
    ...PEOPLE,
    message(alert, target) {
      const content = cutBytes(tagless(textOf(alert)), WECOM_BYTES);
      return json(target.url, JSON.stringify({ msgtype: 'text', text: { content } }));
    },
    refusal: codeRefusal('errcode', 'errmsg'),
  },

  pagerduty: {
    ...PROGRAMS,
    message(alert, target) {
      const payload = {
        summary: titleOf(alert).slice(0, SUMMARY_LENGTH),
        source: alert.limiter ?? 'flyball',
        severity: alert.severity,
        timestamp: new Date(alert.atMs).toISOString(),
        component: 'flyball',
        group: alert.owner === null ? 'flyball' : plain(alert.owner),
        class: alert.kind,
        custom_details: Object.fromEntries(linesOf(alert)),
      };
      const event = {
        routing_key: target.token,
        event_action: alert.state === 'resolved' ? 'resolve' : 'trigger',
        dedup_key: `flyball/${alert.key}`.slice(0, 255),
        payload,
      };
      return json(target.url || PAGERDUTY_URL, JSON.stringify(event));
    },
  },
};

function json(url: string, body: string, headers: Record<string, string> = {}): Message {
  return { url, body, headers: { 'content-type': 'application/json', ...headers } };
}

/** Slack's three characters; links and mentions cannot be made of what is left. */
function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** `<at user_id="all">` and `<@somebody>` mention people, and there is no way to escape them: look-alikes do not. */
function tagless(text: string): string {
  return text.replaceAll('<', '＜').replaceAll('>', '＞');
}

function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= most) return text;
  // A character that was cut through is left out.
  return `${new TextDecoder().decode(bytes.subarray(0, most - 3)).replace(/\ufffd+$/, '')}…`;
}

/** These say 200 also when they refuse. */
function codeRefusal(codeField: string, textField: string) {
  return (text: string): string | null => {
    let answer: Record<string, unknown>;
    try {
      answer = JSON.parse(text) as Record<string, unknown>;
    } catch {
      return `answered ${plain(text).slice(0, 100)}`;
    }
    // Feishu's older hooks say StatusCode.
    const code = answer?.[codeField] ?? answer?.StatusCode;
    if (code === 0) return null;
    return `refused with ${codeField} ${plain(String(code))}: ${plain(String(answer?.[textField] ?? ''))}`;
  };
}
