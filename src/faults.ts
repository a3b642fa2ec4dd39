/** Any thrown thing as code, message and exit code: ours as they are, Redis's own errors in words that say what to do. Stage: cli, api. */
import { EXIT, FlyballError, FlyballTypeError } from './errors.js';
import { redactUrl } from './log.js';

export interface Fault {
  code: string;
  message: string;
  exit: number;
}

/** What Redis or its client says, what it means, and the mend. */
const REDIS_FAULTS: readonly {
  says: RegExp;
  code: string;
  means: string;
  mend: string;
  /** In place of it where nothing was to be written. */
  mendOfReading?: string;
  exit: number;
}[] = [
  {
    says: /^(NOPERM|NOAUTH|WRONGPASS)|user executing the script can't/,
    code: 'FLYBALL_E_REDIS_DENIED',
    means: 'Redis refused the command',
    mend: 'Use a user that may do this: deploy/redis/users.acl has one for each task.',
    exit: EXIT.fault,
  },
  {
    says: /^(READONLY|MISCONF|OOM|LOADING|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|TRYAGAIN|BUSY|Too many Cluster)/,
    code: 'FLYBALL_E_REDIS_CANNOT_WRITE',
    means: 'Redis cannot take writes now',
    mend: 'flyball doctor looks for the cause. Nothing was written.',
    exit: EXIT.fault,
  },
  {
    says: /^WRONGTYPE/,
    code: 'FLYBALL_E_REDIS_KEY_TYPE',
    means: "A key of Flyball's holds a value of another type, so something else has written it",
    mend: 'flyball doctor names the limiter; keep a copy of that key (DUMP), then delete it.',
    exit: EXIT.fault,
  },
  {
    says: /ECONN|EPIPE|Connection is closed|Command timed out|max retries per request/i,
    code: 'FLYBALL_E_REDIS_LOST',
    means: 'Redis went away while the command ran',
    mend: 'A change may have been written or not: flyball audit shows it once Redis answers.',
    mendOfReading: 'Ask again once Redis answers.',
    exit: EXIT.redisUnreachable,
  },
];

/** `reads`: what failed was to write nothing. */
export function describeFault(error: unknown, { reads = false } = {}): Fault {
  if (error instanceof FlyballError || error instanceof FlyballTypeError) {
    return { code: error.code, message: redactUrl(error.message), exit: exitFor(error.code) };
  }
  const said = redactUrl(error instanceof Error ? error.message : String(error));
  // The client names a setting of its own, which nobody can set.
  const message = said.replace(/Reached the max retries per request limit.*/s, 'no connection');
  const known = REDIS_FAULTS.find((fault) => fault.says.test(said));
  if (known) {
    const { code, means, exit } = known;
    const mend = (reads && known.mendOfReading) || known.mend;
    return { code, message: `${means}: ${message.replace(/\.$/, '')}. ${mend}`, exit };
  }
  return {
    code: 'FLYBALL_E_INTERNAL',
    message: `${message || 'unknown fault'}. FLYBALL_DEBUG=1 shows where.`,
    exit: EXIT.fault,
  };
}

/** Settings and files that must be mended before anything can start. */
const BAD_CONFIG = [
  /^FLYBALL_E_(POLICY_.*|CONFIG_.*|DATA_DIR|API_TOKENS_FILE)$/,
  /^FLYBALL_E_REDIS_(NOT_CONFIGURED|URL|TLS|PASSWORD_FILE|SERVER_MISSING)$/,
  /^FLYBALL_E_AUDIT_(FOLDER|KEY|POSTGRES)$/,
];

export function exitFor(code: string): number {
  if (code.startsWith('FLYBALL_E_CLI_') || code === 'FLYBALL_E_NAME_INVALID') return EXIT.usage;
  if (code === 'FLYBALL_E_REDIS_UNREACHABLE') return EXIT.redisUnreachable;
  return BAD_CONFIG.some((known) => known.test(code)) ? EXIT.badConfig : EXIT.fault;
}
