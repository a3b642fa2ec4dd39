/** The checks of where signals come from: addresses, credentials, metrics; a policy is stored and shown, so no secrets. Stage: policy. */
import type { Draft, Report } from './draft.js';
import { show } from './units.js';

type SignalDraft = NonNullable<NonNullable<Draft['signals']>[string]>;
type HttpDraft = Extract<SignalDraft, { source?: 'prometheus' | 'scrape' | undefined }>;

/** What an address of each database looks like. */
const DATABASES = {
  postgres: { form: /^postgres(ql)?:\/\//, name: 'PostgreSQL', like: 'postgres://host/database' },
  mysql: { form: /^mysql:\/\//, name: 'MySQL', like: 'mysql://host/database' },
} as const;

export function checkSources(draft: Draft, report: Report): void {
  for (const [name, signal] of Object.entries(draft.signals ?? {})) {
    if (!signal) continue;
    const field = `signals.${name}`;
    if (signal.source === 'postgres' || signal.source === 'mysql') {
      checkDatabase(signal, field, report);
    }
    if (signal.source === 'prometheus' || signal.source === 'scrape') {
      checkHttp(signal as HttpDraft, field, report);
    }
    if (signal.source === 'prometheus') checkQuery(signal.query, `${field}.query`, report);
    if (signal.source === 'scrape') checkMetric(signal, field, report);
  }
  checkDbWaits(draft, report);
}

function checkDatabase(
  signal: Extract<SignalDraft, { source?: 'postgres' | 'mysql' | undefined }>,
  field: string,
  report: Report,
): void {
  const { source, url } = signal;
  if (source === 'postgres' && signal.for !== undefined && signal.stat !== 'waiting') {
    report(`${field}.for`, 'only says which waits count: leave it out, or use postgres.waiting().');
  }
  if (typeof url !== 'string') return;
  const { form, name, like } = DATABASES[source as 'postgres' | 'mysql'];
  // The address is not repeated in a fault: it may hold what it should not.
  if (!form.test(url)) {
    report(`${field}.url`, `is not a ${name} address (${like}), nor env('DATABASE_URL').`);
  } else if (/\/\/[^?#]*:[^?#]*@/.test(url) || /[?&](ssl)?pass[^=&]*=/i.test(url)) {
    report(
      `${field}.url`,
      "holds a password, and a policy is no place for one. Use env('DATABASE_URL').",
    );
  }
}

const SECRET_HEADER =
  /^(authorization|proxy-authorization|cookie)$|(key|token|secret|password|auth)/i;
const SECRET_PARAMETER = /[?&][^=&]*(token|key|secret|password|auth)[^=&]*=/i;

function checkHttp(signal: HttpDraft, field: string, report: Report): void {
  const { url, token, basic, headers = {}, tls } = signal;
  if (typeof url === 'string') {
    if (!/^https?:\/\/[^/?#\s]+/.test(url)) {
      report(`${field}.url`, "is not an address (http://host:9090), nor env('PROMETHEUS_URL').");
    } else if (/\/\/[^/]*@/.test(url) || SECRET_PARAMETER.test(url)) {
      report(
        `${field}.url`,
        "holds a secret, and a policy is no place for one. Use token: env('…'), basic: { user, password: env('…') }, or env() for the whole address.",
      );
    } else if (tls && url.startsWith('http://')) {
      report(`${field}.tls`, 'has no meaning for http://. Write https://, or leave it out.');
    }
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && SECRET_HEADER.test(name)) {
      report(
        `${field}.headers.${name}`,
        "is written out, and a policy is no place for a secret. Write env('…').",
      );
    }
  }
  const ways = [
    token ? 'token' : '',
    basic ? 'basic' : '',
    Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
      ? 'headers.Authorization'
      : '',
  ].filter(Boolean);
  if (ways.length > 1) {
    report(
      `${field}.${ways[1]}`,
      `is given beside ${ways[0]}: both are the Authorization. Keep one.`,
    );
  }
  if (tls && (tls.cert === undefined) !== (tls.key === undefined)) {
    const one = tls.cert === undefined ? 'cert' : 'key';
    report(
      `${field}.tls.${one}`,
      'is missing: a client certificate needs cert and key. Give both.',
    );
  }
}

/** Only what no server is needed for: the rest is said by `flyball check --live`. */
function checkQuery(query: string | undefined, field: string, report: Report): void {
  if (query === undefined) return;
  const bare = query.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|#[^\n]*/g, '');
  for (const [open, close] of ['()', '{}', '[]']) {
    const count = (char: string) => bare.split(char).length - 1;
    if (count(open!) === count(close!)) continue;
    report(field, `has ${count(open!)} ${show(open)} but ${count(close!)} ${show(close)}.`);
    return;
  }
  if (/\[[^\]]*\]\s*$/.test(bare)) {
    report(field, 'gives a range and not one number. Write rate(…[1m]), or the like.');
  }
}

function checkMetric(
  { stat, metric, labels }: Extract<SignalDraft, { source?: 'scrape' | undefined }>,
  field: string,
  report: Report,
): void {
  if (metric === undefined) return;
  const suffix = /_(bucket|count|sum)$/.exec(metric)?.[0];
  if (stat === 'histogram' && suffix !== undefined) {
    report(
      `${field}.metric`,
      `is ${show(metric)}: name the histogram itself, ${show(metric.slice(0, -suffix.length))}.`,
    );
  }
  if (stat === 'histogram' && labels && 'le' in labels) {
    report(`${field}.labels.le`, 'picks one bucket, and a quantile needs all. Leave it out.');
  }
  if (stat === 'gauge' && /_(total|bucket)$/.test(metric)) {
    report(
      `${field}.metric`,
      `is ${show(metric)}, which by its name counts up for ever. Use scrape.rate(), or scrape.quantile() of a histogram.`,
    );
  }
}

function checkDbWaits({ control, signals = {} }: Draft, report: Report): void {
  if (control?.law !== 'step' || control.dbWaitsAbove === undefined) return;
  const stats = Object.values(signals).map((signal) => signal?.stat);
  if (!stats.some((stat) => stat === undefined || stat === 'waiting' || stat === 'poolWaiting')) {
    report(
      'control.dbWaitsAbove',
      'watches database waits, but no signal gives them. Add postgres.waiting(), mysql.waiting() or telemetry.poolWaiting() to signals.',
    );
  }
}
