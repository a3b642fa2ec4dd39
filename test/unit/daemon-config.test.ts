import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/daemon/config.js';

describe('daemon config', () => {
  test('defaults are those of the documentation', () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      policies: ['policies'],
      prefix: 'flyball',
      tickMs: 1000,
      leaseMs: 5000,
      httpHost: '127.0.0.1',
      httpPort: 9464,
      logLevel: 'info',
      redisUrl: undefined,
    });
  });

  test('environment over defaults, flags over environment', () => {
    const env = { FLYBALL_TICK_MS: '100', FLYBALL_LEASE_MS: '500', FLYBALL_POLICIES: 'a, b' };
    expect(readConfig(env)).toMatchObject({ tickMs: 100, leaseMs: 500, policies: ['a', 'b'] });
    expect(readConfig(env, { policies: ['c'] }).policies).toEqual(['c']);
  });

  test('an unknown setting is an error that names the likely one', () => {
    expect(() => readConfig({ FLYBALL_PORT: '8080' })).toThrow(
      'FLYBALL_PORT is not a setting. Did you mean FLYBALL_HTTP_PORT?',
    );
    expect(() => readConfig({ FLYBALL_TICKMS: '100' })).toThrow(
      'FLYBALL_TICKMS is not a setting. Did you mean FLYBALL_TICK_MS?',
    );
    expect(() => readConfig({ FLYBALL_ZZZZZZZZ: '1' })).toThrow(/not a setting\. Known: FLYBALL_/);
  });

  test('all faults at once, each with its value', () => {
    const env = {
      FLYBALL_TICK_MS: '1s',
      FLYBALL_HTTP_PORT: '70000',
      FLYBALL_LOG_LEVEL: 'loud',
      FLYBALL_REDISURL: 'x',
    };
    let text = '';
    try {
      readConfig(env);
    } catch (error) {
      text = (error as Error).message;
    }
    expect(text.split('\n')).toHaveLength(4);
    expect(text).toContain('FLYBALL_TICK_MS is "1s", which is not a whole number, 20 … 60000.');
    expect(text).toContain('FLYBALL_HTTP_PORT is "70000", which is outside 0 … 65535.');
    expect(text).toContain('FLYBALL_LOG_LEVEL is "loud", which is not one of trace, debug');
    expect(text).toContain('Did you mean FLYBALL_REDIS_URL?');
  });

  test('a lease shorter than two ticks is refused', () => {
    expect(() => readConfig({ FLYBALL_TICK_MS: '3000' })).toThrow(/at least 6000/);
  });

  test('variables that an orchestrator injects for a service named flyball are no faults', () => {
    const env = {
      FLYBALL_SERVICE_HOST: '10.0.0.1',
      FLYBALL_SERVICE_PORT: '9464',
      FLYBALL_PORT: 'tcp://10.0.0.1:9464',
      FLYBALL_PORT_9464_TCP_ADDR: '10.0.0.1',
    };
    expect(readConfig(env).httpPort).toBe(9464);
    expect(() => readConfig({ FLYBALL_PORT: '9000' })).toThrow(/not a setting/);
  });
});
