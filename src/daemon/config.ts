/** What a daemon is told by its environment: flags over environment over defaults, checked as a whole. Stage: daemon. */
import { hostname } from 'node:os';
import { z } from 'zod';
import { closest, third } from '../closest.js';
import { FlyballError } from '../errors.js';
import type { FleetBudget } from '../redis/budget.js';
import { CREDENTIAL_VARIABLES } from '../redis/credentials.js';
import { DEFAULT_PREFIX } from '../redis/keys.js';

export interface DaemonConfig {
  /** Files or folders of policies. */
  policies: string[];
  dataDir: string | undefined;
  redisUrl: string | undefined;
  prefix: string;
  /** Shown in entries and logs; the owner id adds process id and a random part. */
  name: string;
  tickMs: number;
  /** How long the right to actuate outlives its holder. */
  leaseMs: number;
  /** What all daemons of this Redis may change together. */
  fleetBudget: FleetBudget;
  /** How often policy files are read again. */
  reloadMs: number;
  /** `apply`: no changed file is adopted, whatever its policy says; it waits for `flyball apply`. */
  reload: 'auto' | 'apply';
  /** Time one policy file may take to load. */
  policyDeadlineMs: number;
  /** Longest wait for Redis at start. */
  redisWaitMs: number;
  httpHost: string;
  httpPort: number;
  /** Names by which browsers reach it, beside its address. */
  httpHosts: string[];
  /** Names, roles and hashes of tokens; undefined: `tokens` of the data folder. */
  tokensFile: string | undefined;
  logLevel: string;
  audit: AuditConfig;
}

/** Where audit logs go as they grow, and what of them stays in Redis. */
export interface AuditConfig {
  folder: string | undefined;
  /** A file of it that has grown past this is followed by a new one. */
  fileBytes: number;
  postgres: string | undefined;
  /** Private key that signs heads: its file, or itself. */
  keyFile: string | undefined;
  key: string | undefined;
  keep: number;
  keepMost: number;
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const RELOADS = ['auto', 'apply'] as const;

const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `is not a whole number, ${min} … ${max}`)
    .transform(Number)
    .refine((n) => n >= min && n <= max, `is outside ${min} … ${max}`);

const FIELDS = {
  FLYBALL_POLICIES: z.string().min(1, 'is empty').default('policies'),
  FLYBALL_DATA_DIR: z.string().min(1, 'is empty').optional(),
  FLYBALL_REDIS_URL: z.string().min(1, 'is empty').optional(),
  FLYBALL_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, "holds more than letters, digits, '.', '_', '-'")
    .default(DEFAULT_PREFIX),
  FLYBALL_NAME: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, "holds more than letters, digits, '.', '_', '-'")
    .optional(),
  FLYBALL_TICK_MS: whole(20, 60_000).default(1000),
  FLYBALL_LEASE_MS: whole(100, 600_000).default(5000),
  FLYBALL_FLEET_CHANGES_PER_MINUTE: whole(1, 1_000_000).optional(),
  FLYBALL_FLEET_DOUBLINGS_PER_HOUR: whole(1, 1_000_000).optional(),
  FLYBALL_RELOAD_MS: whole(50, 600_000).default(2000),
  FLYBALL_RELOAD: z.enum(RELOADS, { error: `is not one of ${RELOADS.join(', ')}` }).default('auto'),
  FLYBALL_POLICY_DEADLINE_MS: whole(100, 600_000).default(10_000),
  FLYBALL_REDIS_WAIT_MS: whole(100, 600_000).default(10_000),
  FLYBALL_HTTP_HOST: z.string().min(1, 'is empty').default('127.0.0.1'),
  FLYBALL_HTTP_PORT: whole(0, 65_535).default(9464),
  FLYBALL_HTTP_HOSTS: z
    .string()
    .regex(
      /^\s*[A-Za-z0-9._-]+(:\d{1,5})?(\s*,\s*[A-Za-z0-9._-]+(:\d{1,5})?)*\s*$/,
      'is not a list of host names with commas between',
    )
    .optional(),
  FLYBALL_TOKENS_FILE: z.string().min(1, 'is empty').optional(),
  FLYBALL_LOG_LEVEL: z
    .enum(LOG_LEVELS, { error: `is not one of ${LOG_LEVELS.join(', ')}` })
    .default('info'),
  FLYBALL_AUDIT_FILE: z.string().min(1, 'is empty').optional(),
  FLYBALL_AUDIT_FILE_MB: whole(1, 4096).default(64),
  FLYBALL_AUDIT_POSTGRES: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'is no address postgres://…')
    .optional(),
  FLYBALL_AUDIT_KEY_FILE: z.string().min(1, 'is empty').optional(),
  FLYBALL_AUDIT_KEY: z.string().min(1, 'is empty').optional(),
  FLYBALL_AUDIT_KEEP: whole(100, 90_000).default(10_000),
  FLYBALL_AUDIT_KEEP_MOST: whole(100, 90_000).optional(),
} as const;

/** Values of these are never shown. */
const SECRETS = ['FLYBALL_AUDIT_POSTGRES', 'FLYBALL_AUDIT_KEY'];

/** Read by other parts of the product; known here so that a typing error is told from them. */
const READ_ELSEWHERE = [...CREDENTIAL_VARIABLES, 'FLYBALL_REDIS_SERVER', 'FLYBALL_DEBUG'];

/** Variables that Kubernetes and Docker links inject for a service that is itself named `flyball`. */
const INJECTED = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP)(_|$)/;

/** Environment → config. All faults at once, each with the value, what is allowed, and the likely name. */
export function readConfig(
  env: NodeJS.ProcessEnv,
  overrides: Partial<DaemonConfig> = {},
): DaemonConfig {
  const faults: string[] = [];
  const known = [...Object.keys(FIELDS), ...READ_ELSEWHERE];
  for (const key of Object.keys(env)) {
    if (!key.startsWith('FLYBALL_') || known.includes(key)) continue;
    if (INJECTED.test(key) || /^(tcp|udp):\/\//.test(env[key] ?? '')) continue;
    // A name with a word left out (PORT for HTTP_PORT) is far by edits.
    const rest = key.slice('FLYBALL'.length);
    const near =
      known.find((name) => name.endsWith(rest)) ??
      closest(key, known, () => third(key.length))?.name;
    faults.push(
      `${key} is not a setting.${near === undefined ? ` Known: ${known.join(', ')}.` : ` Did you mean ${near}?`}`,
    );
  }
  const parsed = z.object(FIELDS).safeParse(env);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const key = String(issue.path[0]);
      const shown = SECRETS.includes(key) ? 'a value' : JSON.stringify(env[key]);
      faults.push(`${key} is ${shown}, which ${issue.message}.`);
    }
    throw invalid(faults);
  }
  const e = parsed.data;
  const config: DaemonConfig = {
    policies: e.FLYBALL_POLICIES.split(',').map((path) => path.trim()),
    dataDir: e.FLYBALL_DATA_DIR,
    redisUrl: e.FLYBALL_REDIS_URL,
    prefix: e.FLYBALL_PREFIX,
    name: e.FLYBALL_NAME ?? hostname(),
    tickMs: e.FLYBALL_TICK_MS,
    leaseMs: e.FLYBALL_LEASE_MS,
    fleetBudget: {
      changesPerMinute: e.FLYBALL_FLEET_CHANGES_PER_MINUTE,
      doublingsPerHour: e.FLYBALL_FLEET_DOUBLINGS_PER_HOUR,
    },
    reloadMs: e.FLYBALL_RELOAD_MS,
    reload: e.FLYBALL_RELOAD,
    policyDeadlineMs: e.FLYBALL_POLICY_DEADLINE_MS,
    redisWaitMs: e.FLYBALL_REDIS_WAIT_MS,
    httpHost: e.FLYBALL_HTTP_HOST,
    httpPort: e.FLYBALL_HTTP_PORT,
    httpHosts: (e.FLYBALL_HTTP_HOSTS ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean),
    tokensFile: e.FLYBALL_TOKENS_FILE,
    logLevel: e.FLYBALL_LOG_LEVEL,
    audit: {
      folder: e.FLYBALL_AUDIT_FILE,
      fileBytes: e.FLYBALL_AUDIT_FILE_MB * 1_048_576,
      postgres: e.FLYBALL_AUDIT_POSTGRES,
      keyFile: e.FLYBALL_AUDIT_KEY_FILE,
      key: e.FLYBALL_AUDIT_KEY,
      keep: e.FLYBALL_AUDIT_KEEP,
      keepMost: e.FLYBALL_AUDIT_KEEP_MOST ?? Math.max(50_000, e.FLYBALL_AUDIT_KEEP),
    },
    ...overrides,
  };
  if (config.leaseMs < 2 * config.tickMs) {
    faults.push(
      `FLYBALL_LEASE_MS is ${config.leaseMs}, less than two ticks (FLYBALL_TICK_MS ${config.tickMs}): one late tick would lose the lease. Give at least ${2 * config.tickMs}.`,
    );
  }
  const { keep, keepMost } = config.audit;
  if (keepMost < keep) {
    faults.push(
      `FLYBALL_AUDIT_KEEP_MOST is ${keepMost}, less than FLYBALL_AUDIT_KEEP (${keep}): it says how many may wait for an exporter. Give at least ${keep}.`,
    );
  }
  if (faults.length > 0) throw invalid(faults);
  return config;
}

function invalid(faults: readonly string[]): FlyballError {
  return new FlyballError('FLYBALL_E_CONFIG_INVALID', faults.join('\n'));
}
