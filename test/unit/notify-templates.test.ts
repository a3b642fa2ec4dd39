/** What each destination is sent, and what its answer means. Stage: tests. */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Alert } from '../../src/report/notify/alert.js';
import { chatSignature, urlSignature, webhookSignature } from '../../src/report/notify/sign.js';
import { resolveTarget } from '../../src/report/notify/target.js';
import { type Target, TEMPLATES } from '../../src/report/notify/templates.js';

const NOW = 1_700_000_000_000;
const alert: Alert = {
  ...{ key: 'checkout/trip', kind: 'trip', severity: 'critical', state: 'firing' },
  ...{ limiter: 'checkout', owner: 'payments', what: 'tripped', who: 'autopilot d1', atMs: NOW },
  why: '<!channel> *143* & more',
  numbers: [['rate', '0/s']],
  undo: 'flyball reset checkout',
  look: 'flyball explain checkout 8',
};
const over: Alert = { ...alert, state: 'resolved', severity: 'info', undo: null };

function sent(to: Exclude<Target['to'], 'email'>, of = alert, more: Partial<Target> = {}) {
  const target = { to, url: `https://${to}.test/hook`, ...more };
  const message = TEMPLATES[to].message(of, target, 'id-1', NOW);
  return { ...message, json: JSON.parse(message.body) };
}

test('a webhook carries the alert as it is, signed as Standard Webhooks says', () => {
  const secret = `whsec_${Buffer.from('a key').toString('base64')}`;
  const { json, headers, body } = sent('webhook', alert, { secret });
  expect(json).toMatchObject({
    type: 'flyball.trip',
    id: 'id-1',
    key: 'checkout/trip',
    state: 'firing',
  });
  const expected = createHmac('sha256', 'a key').update(`id-1.1700000000.${body}`).digest('base64');
  expect(headers).toMatchObject({
    'webhook-id': 'id-1',
    'webhook-timestamp': '1700000000',
    'webhook-signature': `v1,${expected}`,
  });
  expect(sent('webhook').headers).not.toHaveProperty('webhook-signature');
});

test('the signature is that of the specification’s own example', () => {
  const headers = webhookSignature(
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1_614_265_330_000,
    '{"test": 2432232314}',
  );
  expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('PagerDuty: one incident for each condition, resolved when it is over', () => {
  const fire = sent('pagerduty', alert, { url: '', token: 'R'.repeat(32) });
  expect(fire.url).toBe('https://events.pagerduty.com/v2/enqueue');
  expect(fire.json).toMatchObject({
    routing_key: 'R'.repeat(32),
    event_action: 'trigger',
    dedup_key: 'flyball/checkout/trip',
    payload: { severity: 'critical', source: 'checkout', class: 'trip' },
  });
  expect(sent('pagerduty', over).json).toMatchObject({
    event_action: 'resolve',
    dedup_key: 'flyball/checkout/trip',
  });
});

test('Alertmanager: the same labels from beginning to end, or it would not know them', () => {
  const [fire] = sent('alertmanager', alert).json;
  const [end] = sent('alertmanager', over).json;
  expect(sent('alertmanager').url).toBe('https://alertmanager.test/hook/api/v2/alerts');
  expect(fire.labels.alertname).toBe('Flyball_trip');
  const steady = ({ severity: _, ...labels }: Record<string, string>) => labels;
  expect(steady(end.labels)).toEqual(steady(fire.labels));
  expect(Date.parse(fire.endsAt)).toBeGreaterThan(NOW);
  expect(Date.parse(end.endsAt)).toBeLessThanOrEqual(NOW);
  expect(sent('alertmanager', alert, { token: 't' }).headers.authorization).toBe('Bearer t');
});

test('Slack: nobody is mentioned by what comes from outside', () => {
  const { json } = sent('slack');
  expect(json.blocks[1].text.text).toContain('&lt;!channel&gt;');
  expect(json.blocks[1].text.text).not.toContain('<');
});

describe('chat robots', () => {
  test.each(['feishu', 'dingtalk', 'wecom'] as const)(
    '%s: nobody is mentioned by what comes from outside',
    (to) => {
      const why = '<at user_id="all">x</at> <@all>';
      expect(sent(to, { ...alert, why }).body).not.toMatch(/<|u003c/i);
    },
  );

  test('Feishu and DingTalk sign as their manuals say', () => {
    expect(sent('feishu', alert, { secret: 's' }).json).toMatchObject({
      msg_type: 'text',
      timestamp: '1700000000',
      sign: chatSignature('s', 1_700_000_000),
    });
    const sign = createHmac('sha256', 's').update(`${NOW}\ns`).digest('base64');
    const url = new URL(sent('dingtalk', alert, { secret: 's' }).url);
    expect(url.searchParams.get('timestamp')).toBe(String(NOW));
    expect(url.searchParams.get('sign')).toBe(sign);
    expect(urlSignature('https://x.test/robot?access_token=t', 's', NOW)).toContain(
      'access_token=t',
    );
  });

  test.each(['feishu', 'dingtalk', 'wecom'] as const)('%s says 200 also when it refuses', (to) => {
    const field = to === 'feishu' ? 'code' : 'errcode';
    const refusal = TEMPLATES[to].refusal!;
    expect(refusal(JSON.stringify({ [field]: 0 }))).toBeNull();
    expect(refusal(JSON.stringify({ [field]: 310000, errmsg: 'keywords not in content' }))).toMatch(
      /310000/,
    );
    for (const odd of ['null', '[]', '<html>', ''])
      expect(refusal(odd)).toEqual(expect.any(String));
  });

  test('WeCom: cut at bytes, and never within a character', () => {
    const { json } = sent('wecom', {
      ...alert,
      why: '慢'.repeat(600),
      what: '限'.repeat(600),
      who: '流'.repeat(600),
    });
    expect(Buffer.byteLength(json.text.content)).toBeLessThanOrEqual(4003);
    expect(json.text.content).not.toContain('\ufffd');
  });
});

describe('secrets', () => {
  test('are taken from the environment, by name', () => {
    const found = resolveTarget(
      { to: 'slack', url: { env: 'SLACK_URL' } },
      { SLACK_URL: ' https://hooks.test/x ' },
    );
    expect(found).toEqual({
      target: { to: 'slack', url: 'https://hooks.test/x' },
      name: 'slack (SLACK_URL)',
      secrets: ['https://hooks.test/x'],
    });
  });

  test('by all of an address that tells it: servers repeat paths, and mail servers passwords', () => {
    const slack = { to: 'slack', url: { env: 'URL' } } as const;
    const URL = 'https://hooks.test/services/T01/B0SECRET/x9y8z7?token=abcdef1';
    const { secrets } = resolveTarget(slack, { URL }) as { secrets: string[] };
    for (const part of ['/services/T01/B0SECRET/x9y8z7', 'B0SECRET', 'x9y8z7', 'abcdef1']) {
      expect(secrets).toContain(part);
    }
    expect(secrets).not.toContain('');
    expect(secrets).not.toContain('T01');
    const mail = { to: 'email', smtp: { env: 'URL' }, from: 'a@x.test', recipients: ['b@x.test'] };
    const smtp = resolveTarget(mail as Parameters<typeof resolveTarget>[0], {
      URL: 'smtp://u:p%40ssword@mail.test:587',
    }) as { secrets: string[] };
    expect(smtp.secrets).toEqual(expect.arrayContaining(['p%40ssword', 'p@ssword']));
  });

  test('that are not there, or no address, are named and not shown', () => {
    const slack = { to: 'slack', url: { env: 'SLACK_URL' } } as const;
    expect(resolveTarget(slack, {})).toMatchObject({
      fault: 'the environment variable SLACK_URL is not set where the daemon runs',
    });
    const bad = resolveTarget(slack, { SLACK_URL: 'hunter2' });
    expect(JSON.stringify(bad)).not.toContain('hunter2');
    expect(bad).toMatchObject({ fault: expect.stringContaining('https://host/path') });
  });
});
