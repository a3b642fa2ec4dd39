/** An alert as a mail, through the SMTP server of the policy's address. Stage: report. */
import { escaped } from '../../markup.js';
import { optionalPackage } from '../../optional-package.js';
import { type Alert, linesOf, textOf, titleOf } from './alert.js';
import type { Target } from './templates.js';

/** Rejects with an error whose `permanent` is true where trying again mends nothing. */
export async function sendMail(
  alert: Alert,
  target: Target,
  id: string,
  deadlineMs: number,
): Promise<void> {
  const { createTransport } = await library();
  const transport = createTransport({
    url: target.url,
    connectionTimeout: deadlineMs,
    greetingTimeout: deadlineMs,
    socketTimeout: deadlineMs,
    dnsTimeout: deadlineMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    await transport.sendMail({
      from: target.from,
      to: target.recipients,
      subject: titleOf(alert),
      text: textOf(alert),
      html: htmlOf(alert),
      // One conversation for each condition: what is over answers what began.
      messageId: `<${id}@flyball>`,
      references: `<${alert.key.replace(/[^A-Za-z0-9._-]/g, '-')}@flyball>`,
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Flyball-Alert': alert.kind },
    });
  } catch (error) {
    const { responseCode = 0, code = '' } = error as { responseCode?: number; code?: string };
    const permanent = (responseCode >= 500 && responseCode < 600) || code === 'EAUTH';
    throw Object.assign(error as Error, { permanent });
  } finally {
    transport.close();
  }
}

const library = (): Promise<Pick<typeof import('nodemailer'), 'createTransport'>> =>
  optionalPackage(
    'nodemailer',
    () => import('nodemailer'),
    (text) => Object.assign(new Error(text), { permanent: true }),
  );

function htmlOf(alert: Alert): string {
  const rows = linesOf(alert).map(
    ([label, text]) =>
      `<tr><td style="padding:2px 12px 2px 0;color:#666">${escaped(label)}</td><td>${escaped(text)}</td></tr>`,
  );
  return `<p><strong>${escaped(titleOf(alert))}</strong></p><table>${rows.join('')}</table>`;
}
