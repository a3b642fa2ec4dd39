/**
 * Fields of a telemetry second (`{L}:t:<second>`), all integers moved by HINCRBY; written by the SDK once a
 * second a process, read by the daemon. The second is Redis time when the flush is sent. Stage: enforce → sense.
 */

/** Telemetry seconds live this long. */
export const TELEMETRY_TTL_MS = 120_000;

export const FIELD = {
  /** Flushes of any process, the last field that each writes; `p:<processId>` counts each process, `pr:<processId>` those that report completions. */
  flushes: 'n',
  process: (id: string) => `p:${id}`,
  reportingProcess: (id: string) => `pr:${id}`,
  offered: 'off',
  admitted: 'adm',
  denied: (reason: string) => `d:${reason}`,
  /** Shadow mode: admitted, though the limit would have denied it. */
  wouldDeny: (reason: string) => `sd:${reason}`,
  ok: 'ok',
  failed: 'err',
  timedOut: 'to',
  cancelled: 'can',
  /** Count of latencies in a bin (see sense/readings.ts: γ = 1.02), and their sum in µs. */
  latency: (bin: number) => `l:${bin}`,
  latencySumUs: 'ls',
  /** Of those, the ones of failures: without them the rest are the latencies of good answers. */
  failedLatency: (bin: number) => `lf:${bin}`,
  dbWait: (bin: number) => `w:${bin}`,
  dbWaitSumUs: 'ws',
  /** Answers by route, and the sum of their latencies in µs; from processes that have seen more than one. */
  routeAnswers: (route: string) => `rn:${fieldPart(route)}`,
  routeSumUs: (route: string) => `rs:${fieldPart(route)}`,
  /** Failures by error code; code and upstream pass `fieldPart`. */
  code: (code: string) => `c:${fieldPart(code)}`,
  upstreamOk: (upstream: string) => `uo:${fieldPart(upstream)}`,
  upstreamFailed: (upstream: string) => `ue:${fieldPart(upstream)}`,
  upstreamCode: (upstream: string, code: string) => `uc:${fieldPart(upstream)}:${fieldPart(code)}`,
  /** Gauges, summed over flushes: divide by the flushes that gave them, times the processes. */
  poolWaiting: 'pw',
  poolFlushes: 'pn',
  inFlight: 'inf',
  /** Bin of the age of a process's oldest request; the reader takes the highest. */
  oldest: (bin: number) => `o:${bin}`,
  /** How processes fare, of the flushes that say so: shares of their CPU and memory, summed, in ‰; delay of their event
   * loop (99th percentile of the second) by bin, and its sum in µs. */
  vitals: 'vn',
  cpu: 'vc',
  memory: 'vm',
  loopDelay: (bin: number) => `e:${bin}`,
  loopDelaySumUs: 'es',
  /** Whole seconds that Redis's clock is ahead of the process's; sent by processes that are more than a second off. */
  clockSkew: (seconds: number) => `k:${seconds}`,
  /** Decisions without Redis since the last flush that came through, and decisions that took longer than 5 ms. */
  fallback: 'fb',
  slowDecisions: 'sl',
  /** Takes of subjects past the most that may live, likewise since the last flush: they share one bucket. */
  overflow: 'ov',
  /** Outcomes by breaker generation. */
  generationOk: (generation: number) => `go:${generation}`,
  generationFailed: (generation: number) => `ge:${generation}`,
  generationCode: (generation: number, code: string) => `gc:${generation}:${fieldPart(code)}`,
} as const;

/** A whole number holds so many bytes. */
export const CODE_BYTES = 4;

/** A kind's few bytes as one number: lines are walked by the thousand, and a text of each would be most of the cost. */
export function codeOf(lines: Uint8Array, from: number, to: number): number {
  let code = 0;
  for (let at = from; at < to; at++) code = (code << 8) | lines[at]!;
  return code;
}

/** Codes and upstream names as field parts: no colon, at most 64 characters. */
export function fieldPart(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 64);
}
