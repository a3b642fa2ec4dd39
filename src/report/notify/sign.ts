/** How messages prove where they come from: Standard Webhooks, and the schemes of chat robots. Stage: report. */
import { createHmac } from 'node:crypto';

/**
 * Headers by the Standard Webhooks specification 1.0: HMAC-SHA-256 of `id.timestamp.body`, base64, under `v1`.
 * A secret of the form `whsec_<base64>` is decoded first, any other is used as it is.
 */
export function webhookSignature(
  secret: string,
  id: string,
  nowMs: number,
  body: string,
): Record<string, string> {
  const seconds = Math.floor(nowMs / 1000);
  const key = secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret, 'utf8');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}

/** Feishu's: `timestamp\nsecret` is the key, and nothing the message; base64. */
export function chatSignature(secret: string, seconds: number): string {
  return createHmac('sha256', `${seconds}\n${secret}`).update('').digest('base64');
}

/** DingTalk's: `timestamp\nsecret` under the secret, base64, as parameters of the address; milliseconds. */
export function urlSignature(url: string, secret: string, nowMs: number): string {
  const stamp = Math.floor(nowMs);
  const sign = createHmac('sha256', secret).update(`${stamp}\n${secret}`).digest('base64');
  const signed = new URL(url);
  signed.searchParams.set('timestamp', String(stamp));
  signed.searchParams.set('sign', sign);
  return signed.href;
}
