/** Alerts on their way: real servers that refuse, hang, redirect and flood; mail through a real SMTP server. */
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Alert } from '../../src/report/notify/alert.js';
import { attempt } from '../../src/report/notify/attempt.js';
import { createOutbox, TRIES } from '../../src/report/notify/outbox.js';
import { resolveTarget } from '../../src/report/notify/target.js';
import type { Target } from '../../src/report/notify/templates.js';
import { type Receiver, startReceiver } from '../support/receiver.js';

function alertOf(n: number, more: Partial<Alert> = {}): Alert {
  return {
    ...{ key: `l${n}/trip`, kind: 'trip', severity: 'critical', state: 'firing', limiter: `l${n}` },
    ...{ owner: null, what: 'tripped', why: 'errors', who: 'd1', numbers: [], undo: null },
    ...{ look: `flyball explain l${n} 2`, atMs: 1_700_000_000_000 },
    ...more,
  } as Alert;
}

let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

/** Long enough for a busy machine; who hangs is given less. */
const DEADLINE_MS = 20_000;

function send(
  to: Target['to'],
  more: Partial<Target> = {},
  path = '/hook-secret',
  deadlineMs = DEADLINE_MS,
) {
  const url = `${receiver.url}${path}`;
  const target = { to, url, ...more };
  return attempt({
    ...{ alert: alertOf(1), target, secrets: [url, 'hook-secret'], id: 'id-1' },
    ...{ nowMs: 1_700_000_000_000, deadlineMs },
  });
}

describe('one attempt', () => {
  test('delivers', async () => {
    expect(await send('webhook')).toEqual({ status: 'sent' });
    expect(JSON.parse(receiver.got[0]!.body)).toMatchObject({ key: 'l1/trip', kind: 'trip' });
  });

  test.each([
    [500, true],
    [503, true],
    [429, true],
    [408, true],
    [400, false],
    [401, false],
    [404, false],
    [302, false],
  ])('a status %i: tried again %s', async (status, retry) => {
    receiver.answer((response) => {
      response.writeHead(status, { location: '/elsewhere', 'retry-after': '7' });
      response.end('said hook-secret\u0007');
    });
    const outcome = await send('slack');
    expect(outcome).toMatchObject({ status: 'failed', retry, retryAfterMs: 7000 });
    const { why } = outcome as { why: string };
    expect(why).toContain(String(status));
    expect(why).not.toContain('hook-secret');
    expect(why).not.toContain('\u0007');
    // Not followed: what is sent is for this address alone.
    expect(receiver.got).toHaveLength(1);
  });

  test('a server that answers on and on has it all the same, and is not sent it again', async () => {
    receiver.answer((response) => {
      response.writeHead(200);
      // Never ended: waiting for its end would be a failure, and five more of the same.
      response.write('o');
    });
    expect(await send('slack')).toEqual({ status: 'sent' });
    expect(await send('webhook')).toEqual({ status: 'sent' });
  });

  test('an answer that breaks off is what its status says', async () => {
    receiver.answer((response) => {
      response.writeHead(404, { 'content-length': '10' });
      response.write('half', () => response.destroy());
    });
    expect(await send('slack')).toMatchObject({ retry: false, why: expect.stringMatching(/^404/) });
  });

  test('who asks for an hour of patience gets five minutes', async () => {
    receiver.answer((response) => {
      response.writeHead(503, { 'retry-after': '3600' });
      response.end();
    });
    expect(await send('slack')).toMatchObject({ retry: true, retryAfterMs: 300_000 });
  });

  test('a server that repeats where the secret lies tells none of it, wherever its answer is cut', async () => {
    for (let before = 0; before < 130; before += 7) {
      receiver.answer((response, { path }) => {
        response.writeHead(404);
        response.end(`${'-'.repeat(before)}Cannot POST ${path}`);
      });
      const target = { to: 'slack', url: `${receiver.url}/services/hook-secret` } as const;
      const { secrets } = resolveTarget(
        { to: 'slack', url: { env: 'URL' } },
        { URL: target.url },
      ) as { secrets: string[] };
      const outcome = await attempt({
        ...{ alert: alertOf(1), target, secrets, id: 'i', nowMs: 0, deadlineMs: DEADLINE_MS },
      });
      expect(outcome).toMatchObject({ status: 'failed' });
      expect(JSON.stringify(outcome)).not.toMatch(/services|hook-|secre/);
    }
  });

  test('a server that hangs, or never ends what says whether it took it, costs its deadline', async () => {
    receiver.answer(() => {});
    expect(await send('webhook', {}, '/hook-secret', 300)).toMatchObject({
      why: 'no answer in time',
      retry: true,
    });
    receiver.answer((response) => void response.write('x'));
    expect(await send('feishu', {}, '/hook-secret', 300)).toMatchObject({
      status: 'failed',
      retry: true,
    });
  });

  test('an answer of megabytes is not read', async () => {
    receiver.answer((response) => {
      response.writeHead(200);
      for (let i = 0; i < 100; i++) response.write('y'.repeat(100_000));
    });
    expect(await send('feishu')).toMatchObject({ status: 'failed', retry: false });
  });

  test('an address with a login: it goes as a header, and stands in no reason', async () => {
    const address = receiver.url.replace('//', '//ada:pa55word%@');
    const resolved = resolveTarget({ to: 'alertmanager', url: { env: 'AM' } }, { AM: address });
    if ('fault' in resolved) throw new Error(resolved.fault);
    const { target, secrets } = resolved;
    const rest = { alert: alertOf(1), target, secrets, id: 'i', nowMs: 0, deadlineMs: 20_000 };
    expect(await attempt(rest)).toEqual({ status: 'sent' });
    const { authorization } = receiver.got[0]!.headers;
    expect(authorization).toBe(`Basic ${Buffer.from('ada:pa55word%').toString('base64')}`);
    receiver.answer((response) => void response.writeHead(400).end(address));
    expect(JSON.stringify(await attempt(rest))).not.toContain('pa55word');
  });

  test('nobody listens: the reason names no secret', async () => {
    const { url } = receiver;
    await receiver.close();
    const target = { to: 'webhook', url: `${url}/hook-secret` } as const;
    const outcome = await attempt({
      ...{ alert: alertOf(1), target, secrets: [`${url}/hook-secret`], id: 'i' },
      ...{ nowMs: 0, deadlineMs: DEADLINE_MS },
    });
    expect(outcome).toMatchObject({ status: 'failed', retry: true });
    expect(JSON.stringify(outcome)).not.toContain('hook-secret');
    receiver = await startReceiver();
  });
});

describe('mail', () => {
  async function mailServer(options: { refuse?: number } = {}) {
    const mails: { to: string[]; text: string }[] = [];
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onAuth: (auth, _session, done) =>
        auth.password === 'right'
          ? done(null, { user: auth.username })
          : done(Object.assign(new Error('no'), { responseCode: 535 })),
      onRcptTo(_address, _session, done) {
        if (options.refuse === undefined) return done();
        done(Object.assign(new Error('refused'), { responseCode: options.refuse }));
      },
      onData(stream, session, done) {
        let text = '';
        stream.setEncoding('utf8').on('data', (part) => {
          text += part;
        });
        stream.on('end', () => {
          mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), text });
          done();
        });
      },
    });
    await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
    const { port } = server.server.address() as AddressInfo;
    return { mails, port, close: () => new Promise<void>((ok) => server.close(ok)) };
  }

  async function mail(url: string, alert = alertOf(1)) {
    const target = { to: 'email', url, from: 'f@x.test', recipients: ['a@x.test', 'b@x.test'] };
    return attempt({
      ...{ alert, target: target as Target, secrets: [url, 'wrong'], id: 'id-1' },
      ...{ nowMs: 0, deadlineMs: DEADLINE_MS },
    });
  }

  test('arrives with subject, text and markup that is inert', async () => {
    const server = await mailServer();
    const alert = alertOf(1, { why: '<img src=x onerror=alert(1)>' });
    expect(await mail(`smtp://u:right@127.0.0.1:${server.port}`, alert)).toEqual({
      status: 'sent',
    });
    const [got] = server.mails;
    expect(got!.to).toEqual(['a@x.test', 'b@x.test']);
    expect(got!.text).toContain('Subject: [critical] l1: tripped');
    expect(got!.text).toContain('&lt;img src=3Dx');
    await server.close();
  });

  test('a wrong password, and a mailbox that is none, are not tried again; a full one is', async () => {
    const server = await mailServer();
    const wrong = await mail(`smtp://u:wrong@127.0.0.1:${server.port}`);
    expect(wrong).toMatchObject({ status: 'failed', retry: false });
    expect(JSON.stringify(wrong)).not.toContain('wrong');
    await server.close();
    for (const [refuse, retry] of [
      [550, false],
      [452, true],
    ] as const) {
      const refusing = await mailServer({ refuse });
      expect(await mail(`smtp://127.0.0.1:${refusing.port}`)).toMatchObject({ retry });
      await refusing.close();
    }
  });
});

describe('the outbox', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function outbox(options: { perMinute?: number; merges?: boolean; outcomes?: string[] } = {}) {
    const sent: Alert[] = [];
    const ended: string[] = [];
    const outcomes = options.outcomes ?? [];
    const box = createOutbox({
      perMinute: options.perMinute ?? 10,
      merges: options.merges ?? true,
      clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() },
      random: () => 0.5,
      newId: () => 'id',
      async send(alert) {
        sent.push(alert);
        const outcome = outcomes.shift() ?? 'sent';
        if (outcome === 'sent') return { status: 'sent' };
        return { status: 'failed', why: outcome, retry: outcome !== 'never' };
      },
      onEnd: (alert, end) => ended.push(`${alert.limiter} ${end}`),
    });
    return { box, sent, ended };
  }

  test('tries again with growing patience, and gives up in the end', async () => {
    const { box, sent, ended } = outbox({ outcomes: Array(TRIES + 1).fill('503') });
    box.put(alertOf(1));
    await vi.advanceTimersByTimeAsync(200_000);
    expect(sent).toHaveLength(TRIES);
    expect(ended).toEqual(['l1 failed']);
  });

  test('what trying again does not mend is not tried again; the next goes on', async () => {
    const { box, sent, ended } = outbox({ outcomes: ['never'] });
    box.put(alertOf(1));
    box.put(alertOf(2));
    await vi.advanceTimersByTimeAsync(10);
    expect(sent).toHaveLength(2);
    expect(ended).toEqual(['l1 failed', 'l2 sent']);
  });

  test('a thousand at once: people get ten messages in a minute, and none is lost', async () => {
    const { box, sent, ended } = outbox();
    for (let i = 0; i < 1000; i++) box.put(alertOf(i));
    await vi.advanceTimersByTimeAsync(50_000);
    expect(sent).toHaveLength(10);
    expect(sent.at(-1)).toMatchObject({ what: '991 alerts at once', limiter: null });
    expect(sent.at(-1)!.why).toMatch(/^trip × 991; of l9, .* and 981 more$/);
    expect(ended).toHaveLength(1000);
  });

  test('programs get each, as fast as they may', async () => {
    const { box, sent } = outbox({ perMinute: 600, merges: false });
    for (let i = 0; i < 1000; i++) box.put(alertOf(i));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(sent).toHaveLength(600);
    await vi.advanceTimersByTimeAsync(61_000);
    expect(sent).toHaveLength(1000);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1000);
  });

  test('what waits too long for a dead destination is bounded', async () => {
    const { box, ended } = outbox({ outcomes: Array(10_000).fill('503') });
    for (let i = 0; i < 3000; i++) box.put(alertOf(i));
    await vi.advanceTimersByTimeAsync(0);
    expect(ended.filter((end) => end.endsWith('dropped')).length).toBeGreaterThan(900);
    const closing = box.close(100);
    await vi.advanceTimersByTimeAsync(200);
    await closing;
    expect(ended).toHaveLength(3000);
  });
});
