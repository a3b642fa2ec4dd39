/** Faults as HTTP answers: a status for each code, and an RFC 9457 problem that says what mends it. Stage: api. */
import type { z } from 'zod';
import { WishFault } from '../actuate/verbs/wish-fault.js';
import { type ErrorCode, FlyballError } from '../errors.js';
import { describeFault } from '../faults.js';
import { inertLine } from '../unsafe.js';
import type { Problem } from './types.js';

export const PROBLEM_TYPE = 'application/problem+json';

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is not as it must be',
  401: 'A token is needed',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Not that method',
  409: 'It changed meanwhile',
  413: 'Too large',
  415: 'Not JSON',
  421: 'Not this host',
  422: 'It cannot be done',
  429: 'Too many requests',
  500: 'A fault of the daemon',
  503: 'Not now',
};

/** Codes that other parts of the product throw, as statuses. */
const STATUSES: readonly [RegExp, number][] = [
  [/^FLYBALL_E_(CLI_UNKNOWN_LIMITER|AUDIT_NO_REVISION)$/, 404],
  [/^FLYBALL_E_(CLI_USAGE|NAME_INVALID)$/, 400],
  [/^FLYBALL_E_(ACTUATE_CONTENDED|APPROVE_STALE)$/, 409],
  [
    /^FLYBALL_E_(APPROVE_REFUSED|PROMOTE_\w+|POLICY_UNREADABLE|LIMITER_UNMANAGED|ACTUATE_REFUSED|AUDIT_BROKEN)$/,
    422,
  ],
  [/^FLYBALL_E_REDIS_/, 503],
];

/** A fault that knows its status, and what else its answer says. */
export class ApiError extends FlyballError {
  constructor(
    readonly status: number,
    code: ErrorCode,
    message: string,
    readonly more: Pick<Problem, 'faults' | 'current'> & { headers?: Record<string, string> } = {},
  ) {
    super(code, message);
  }
}

/** Anything thrown as an answer; what nobody foresaw tells nothing of the inside. */
export function problemAnswer(error: unknown, { reads = false } = {}): Response {
  if (error instanceof ApiError) {
    const { headers, ...more } = error.more;
    return answer(error.status, error.code, error.message, more, headers);
  }
  const { code, message } = describeFault(error, { reads });
  if (code === 'FLYBALL_E_INTERNAL') {
    return answer(500, code, 'The daemon met an unexpected fault; its log says which.');
  }
  const status = STATUSES.find(([codes]) => codes.test(code))?.[1] ?? 500;
  const field = error instanceof WishFault ? error.fields[0] : undefined;
  const more = field === undefined ? {} : { faults: [{ field, message }] };
  return answer(status, code, message, more, status === 503 ? { 'retry-after': '1' } : {});
}

function answer(
  status: number,
  code: string,
  detail: string,
  more: Partial<Problem> = {},
  headers: Record<string, string> = {},
): Response {
  const title = TITLES[status] ?? 'A fault';
  const problem: Problem = { type: `urn:flyball:${code}`, title, status, detail, code, ...more };
  return new Response(inertLine(JSON.stringify(problem)), {
    status,
    headers: { 'content-type': PROBLEM_TYPE, ...headers },
  });
}

/** Each fault of a query or body, by its field. */
export function invalid(what: 'body' | 'query', error: z.ZodError): ApiError {
  const faults = error.issues.flatMap((issue) => {
    const at = issue.path.map(String).join('.');
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [];
    if (keys.length > 0) {
      return keys.slice(0, 20).map((key) => ({
        field: [at, key.slice(0, 100)].filter(Boolean).join('.'),
        message: 'is not known here',
      }));
    }
    return [{ field: at, message: issue.message }];
  });
  return notAsItMustBe(what, faults);
}

/** Of fields that do not go together, or a time to come: as no schema says. */
export function invalidField(
  field: string,
  message: string,
  what: 'body' | 'query' = 'body',
): ApiError {
  return notAsItMustBe(what, [{ field, message }]);
}

function notAsItMustBe(what: string, faults: { field: string; message: string }[]): ApiError {
  const each = faults.map(({ field, message }) => `${field || what}: ${message}`).join('; ');
  const told = `The ${what} is not as it must be. ${each}.`;
  return new ApiError(400, 'FLYBALL_E_API_INVALID', told, { faults });
}

export function tooOften(retryAfterMs: number | null): ApiError {
  const seconds = Math.max(1, Math.ceil((retryAfterMs ?? 1000) / 1000));
  return new ApiError(
    429,
    'FLYBALL_E_API_RATE',
    `Too many requests. Try again in ${seconds} s; for what goes on read /api/v1/stream.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}
