/** One attempt to send one alert to one destination, bounded in time and bytes: sent, or why not and whether to try again. Stage: report. */
import { redacted } from '../../log.js';
import { takeLogin } from '../../login.js';
import { type Alert, plain } from './alert.js';
import { sendMail } from './email.js';
import { type Message, type Target, TEMPLATES } from './templates.js';

export type Outcome =
  | { status: 'sent' }
  /** `retryAfterMs`: it said so itself; null: trying again mends nothing. */
  | { status: 'failed'; why: string; retry: boolean; retryAfterMs?: number };

export interface AttemptOptions {
  alert: Alert;
  target: Target;
  secrets: readonly string[];
  id: string;
  nowMs: number;
  deadlineMs: number;
}

const LARGEST_ANSWER = 10_000;
/** What is to be told waits meanwhile: a page of a proxy's that says an hour must not keep a night's alerts. */
const LONGEST_RETRY_AFTER_S = 300;

/** Never rejects, and its `why` holds no secret. */
export async function attempt(options: AttemptOptions): Promise<Outcome> {
  const { alert, target, secrets, id, nowMs, deadlineMs } = options;
  try {
    if (target.to === 'email') {
      await sendMail(alert, target, id, deadlineMs);
      return { status: 'sent' };
    }
    const template = TEMPLATES[target.to];
    const message = template.message(alert, target, id, nowMs);
    return await post(message, deadlineMs, secrets, template.refusal);
  } catch (error) {
    const { permanent } = error as { permanent?: boolean };
    return { status: 'failed', why: redacted(reasonOf(error), secrets), retry: permanent !== true };
  }
}

async function post(
  message: Message,
  deadlineMs: number,
  secrets: readonly string[],
  refusal: ((text: string) => string | null) | undefined,
): Promise<Outcome> {
  const url = new URL(message.url);
  const login = takeLogin(url);
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'user-agent': 'flyball-daemon',
      ...(login === null ? {} : { authorization: login.authorization }),
      ...message.headers,
    },
    body: message.body,
    // Elsewhere may be anybody: what is sent is meant for this address.
    redirect: 'manual',
    signal: AbortSignal.timeout(deadlineMs),
  });
  const { status } = response;
  const taken = status >= 200 && status < 300;
  if (taken && refusal === undefined) {
    // Its status says it all: one that answers on and on has the alert, and is not sent it again.
    response.body?.cancel().catch(() => {});
    return { status: 'sent' };
  }
  const answered = taken ? await firstOf(response) : await firstOf(response).catch(() => '');
  // Before anything is cut off it: a half of a secret is found by nobody.
  const text = redacted(answered, secrets);
  if (taken) {
    const why = refusal?.(text) ?? null;
    return why === null ? { status: 'sent' } : { status: 'failed', why, retry: false };
  }
  const said = text === '' ? '' : `: ${plain(text).slice(0, 120)}`;
  const retry = status === 429 || status === 408 || status >= 500;
  const after = retryAfterMs(response.headers.get('retry-after'));
  return {
    status: 'failed',
    why: `${status}${hint(status)}${said}`,
    retry,
    ...(after === undefined ? {} : { retryAfterMs: after }),
  };
}

function hint(status: number): string {
  if (status >= 300 && status < 400) return ' (it redirects: give the address itself)';
  if (status === 401 || status === 403) return ' (it refuses these credentials)';
  if (status === 404 || status === 410)
    return ' (nothing is at this address: was the hook deleted?)';
  return '';
}

/** What is longer is not read. */
async function firstOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    parts.push(part as Uint8Array);
    size += (part as Uint8Array).length;
    if (size >= LARGEST_ANSWER) break;
  }
  return Buffer.concat(parts).toString('utf8').slice(0, LARGEST_ANSWER);
}

function retryAfterMs(header: string | null): number | undefined {
  const seconds = Number(header ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, LONGEST_RETRY_AFTER_S) * 1000
    : undefined;
}

function reasonOf(error: unknown): string {
  const { name = '', message = '', cause } = error as Error & { cause?: { code?: string } };
  if (name === 'TimeoutError') return 'no answer in time';
  const code = cause?.code ?? (error as { code?: string }).code;
  return plain(code === undefined ? message || 'unknown error' : `${code}: ${message}`);
}
