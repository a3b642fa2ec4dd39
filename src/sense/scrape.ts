/** Reads a /metrics page itself: gauges as they are, counters and histograms by what they gained since the last look. Stage: sense. */
import { guarded } from './guarded.js';
import { createHttpClient, HttpFault } from './http-get.js';
import { missingForHttp, statusFault, targetOf } from './http-target.js';
import type { Missing } from './readings.js';
import { remembered } from './scrape-numbers.js';
import { type Page, PageFault, parsePage } from './scrape-parse.js';
import { pageNumber, type ScrapeSignal, sampleNames, type Taken } from './scrape-reading.js';
import { compare } from './scrape-workers.js';
import { seenNumber } from './seen.js';
import {
  keyOf,
  lookOf,
  missing,
  type Seen,
  type Source,
  type SourceDeps,
  unaskable,
} from './source.js';

const DEADLINE_MS = 800;
/** Pages taken at once before the first counts are believed: workers behind one port take turns. */
const CENSUS = 4;
/** Once more than one process has answered, nothing is read for so long; then they are counted again. */
const SEVERAL_MS = 30_000;
/** What was gained since longer ago says nothing of now. */
const BASELINE_MS = 60_000;
/** `Date` is in whole seconds, and a page takes its time: what lies further ahead is of no moment that was. */
const AHEAD_MS = 5_000;

const ACCEPT =
  'text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.9,*/*;q=0.1';

export function scrapeKey(signal: ScrapeSignal, env: NodeJS.ProcessEnv): string {
  const found = targetOf(signal, env);
  const where = 'kind' in found ? signal.url : [found.target.url.href, found.target.headers];
  return keyOf('scrape', where, signal.deadlineMs, signal.tls);
}

/** All signals of one page share one request a tick. */
export function createScrapeSource(signal: ScrapeSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { deadlineMs = DEADLINE_MS } = signal;
  const found = targetOf(signal, env);
  if ('kind' in found) return unaskable(found);
  const { target, secrets } = found;
  const client = createHttpClient(target, { accept: ACCEPT, reuse: false });
  let names: ReadonlySet<string> = new Set();
  /** Those of them that count up. */
  let counted: ReadonlySet<string> = new Set();
  let baseline: Taken | null = null;
  let several: { untilMs: number; why: Missing } | null = null;
  /** What was seen last of each signal, and the page's own time of it. */
  const told = new WeakMap<ScrapeSignal, { seen: Seen; stampMs: number }>();

  const guard = guarded<Taken[]>({
    name: `the page at ${target.url.host}`,
    source: 'scrape',
    deadlineMs,
    log,
    secrets,
    async ask(over) {
      const startMs = clock.monotonicMs();
      const pages = [await take(over)];
      while (
        baseline === null &&
        pages.length < CENSUS &&
        clock.monotonicMs() - startMs < deadlineMs / 2
      ) {
        pages.push(await take(over));
      }
      return pages;
    },
    missingFor: (error) =>
      error instanceof PageFault ? missing('error', error.message) : missingForHttp(error),
  });

  async function take(over: AbortSignal): Promise<Taken> {
    const monotonicMs = clock.monotonicMs();
    const { status, contentType, text, serverMs } = await client.get(target.url, over);
    if (status !== 200) throw statusFault(status);
    if (/protobuf|html|json/i.test(contentType)) {
      throw new HttpFault('error', `it answers with ${contentType}, not with a page of metrics`);
    }
    const openMetrics = /openmetrics/i.test(contentType);
    return { page: parsePage(text, openMetrics, names), monotonicMs, serverMs };
  }

  /** Why nothing can be said of these pages, or null; moves the baseline. */
  function judge(pages: readonly Taken[]): { before: Taken | null; fault: Missing | null } {
    const newest = pages[pages.length - 1]!;
    const before = baseline;
    let last = before ?? pages[0]!;
    let restarted: string | null = null;
    for (const taken of before === null ? pages.slice(1) : pages) {
      const { verdict, ...rest } = compare(last.page, taken.page);
      // Nothing restarts between pages that are taken at once.
      if (verdict === 'several' || (verdict === 'restarted' && before === null)) {
        const { why } = rest as { why: string };
        const detail = `more than one process answers at this address (${why}). Give each a port of its own, let one page add them up (prom-client: AggregatorRegistry), or ask Prometheus.`;
        several = {
          untilMs: newest.monotonicMs + SEVERAL_MS,
          why: missing('ambiguous', detail.slice(0, 300)),
        };
        baseline = null;
        return { before: null, fault: several.why };
      }
      if (verdict === 'restarted') restarted = (rest as { why: string }).why;
      last = taken;
    }
    baseline = restarted === null ? { ...newest, page: withGone(before, newest.page) } : null;
    return {
      before,
      fault: restarted === null ? null : missing('reset', `the process restarted: ${restarted}`),
    };
  }

  /** What the next page is held against. */
  function withGone(before: Taken | null, page: Page): Page {
    if (before === null) return page;
    const samples = new Map(page.samples);
    for (const name of counted) {
      const known = before.page.samples.get(name);
      if (known !== undefined)
        samples.set(name, [...remembered(known, page.samples.get(name) ?? [])]);
    }
    return { ...page, samples };
  }

  function seenOf(wanted: ScrapeSignal, before: Taken | null, now: Taken): Seen | Missing {
    const number = pageNumber(wanted, before, now);
    const last = told.get(wanted);
    if (number === 'repeated') {
      return last?.seen ?? missing('not_started', 'the page has nothing newer than before');
    }
    if ('kind' in number) return number;
    const { value, stampMs, ...more } = number;
    if (stampMs !== null && last?.stampMs === stampMs) return last.seen;
    // The page's times are its server's: only the age is taken over, by that server's own clock if it tells it.
    const ageMs = stampMs === null ? 0 : (now.serverMs ?? clock.nowMs()) - stampMs;
    if (ageMs < -AHEAD_MS) {
      const aheadS = Math.round(-ageMs / 1000);
      return missing('clock_skew', `its samples are of ${aheadS} s after its own time`);
    }
    const unit = 'unit' in wanted ? (wanted.unit ?? 'count') : 'count';
    const seen = seenNumber(value, unit, now.monotonicMs - Math.max(0, ageMs), more);
    if (seen.kind === 'value' && stampMs !== null) told.set(wanted, { seen, stampMs });
    return seen;
  }

  return {
    async look(wanted) {
      const signals = wanted as readonly ScrapeSignal[];
      const held = several;
      if (held !== null && clock.monotonicMs() < held.untilMs)
        return lookOf(wanted, () => held.why);
      several = null;
      names = new Set(signals.flatMap(sampleNames));
      counted = new Set(signals.filter(({ stat }) => stat !== 'gauge').flatMap(sampleNames));
      if (baseline !== null && clock.monotonicMs() - baseline.monotonicMs > BASELINE_MS) {
        baseline = null;
      }
      const pages = await guard.ask();
      if ('kind' in pages) return lookOf(wanted, () => pages);
      const now = pages[pages.length - 1]!;
      const { before, fault } = judge(pages);
      return lookOf(wanted, (each) => fault ?? seenOf(each as ScrapeSignal, before, now));
    },
    async close() {
      guard.close();
      client.close();
    },
  };
}
