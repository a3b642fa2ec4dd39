/** Errors with codes: every error a user can meet names the fault, the value and the mend. All stages. */

/** `FLYBALL_E_<STAGE>_<WHAT>`; each code is documented in `docs/errors.md`. */
export type ErrorCode = `FLYBALL_E_${string}`;

export class FlyballError extends Error {
  override readonly name: string = 'FlyballError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Misuse of the SDK by the caller (bad cost, subject, duration): a `TypeError`, so that it is never
 * mistaken for a fault of Redis, and nothing has been written.
 */
export class FlyballTypeError extends TypeError {
  override readonly name = 'FlyballTypeError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** One fault found in a policy: where it is, what was given, what is allowed. */
export interface PolicyFault {
  file: string;
  /** Dotted path, `bounds.rate.min`; empty for the file as a whole. */
  field: string;
  message: string;
  line?: number;
}

/** All faults of all policy files at once. */
export class PolicyError extends FlyballError {
  readonly faults: readonly PolicyFault[];

  constructor(faults: readonly PolicyFault[]) {
    super('FLYBALL_E_POLICY_INVALID', faults.map(formatFault).join('\n'));
    this.faults = faults;
  }
}

export function formatFault(fault: PolicyFault): string {
  const place = fault.line === undefined ? fault.file : `${fault.file}:${fault.line}`;
  return `FLYBALL_E_POLICY_INVALID ${place}: ${fault.field ? `${fault.field} ` : ''}${fault.message}`;
}

/** Exit codes of every command (sysexits where one fits). */
export const EXIT = {
  ok: 0,
  fault: 1,
  usage: 64,
  redisUnreachable: 75,
  badConfig: 78,
  /** Ctrl-C, as shells say it: 128 + SIGINT. */
  interrupted: 130,
} as const;
