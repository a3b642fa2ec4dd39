/** What is in force now, what binds and why, who holds it and for how long. Stage: dashboard. */
import type { ComponentChildren } from 'preact';
import type { LimiterAnswer } from '../../api/types.js';
import type { StatusView } from '../../view/status.js';
import { number, span } from '../../view/text.js';
import { attentions } from '../data/attention.js';
import { deniedOf } from '../data/rows.js';
import { useSeconds } from '../data/store.js';
import { countdown } from '../data/times.js';
import { Glyph, stateWords } from '../parts/glyph.jsx';
import { Meter } from '../parts/meter.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { changeHash, limiterHash, policyHash } from '../routing.js';
import { bindsSentence, denials, loopSentence, verdictSentences } from './binds.js';
import { canarySentence } from './canary.js';

const HELD = {
  pinned: 'Pinned',
  frozen: 'Frozen',
  open: 'Held open',
  bounds: 'Bounds set',
} as const;

export function Now({ view, answer }: { view: StatusView; answer: LimiterAnswer | null }) {
  const now = useSeconds();
  const standing = attentions(view, now).filter(({ level }) => level !== 'well');
  const decision = answer?.decision ?? null;
  const last = view.lastChange;
  const { inForce, bounds, traffic, daemon } = view;
  const denied = denials(traffic.deniedPerSecond);
  const would = denials(traffic.wouldDenyPerSecond);
  return (
    <section class="sheet now" aria-label="Now">
      {standing.length > 0 && (
        <ul class="standing">
          {standing.map(({ level, words }) => (
            <li key={words} class={`state ${level}`}>
              <Glyph shape={level} />
              <Outside text={words} />
            </li>
          ))}
        </ul>
      )}
      <div class="figures">
        <Big title="Rate">
          {inForce ? (
            <Meter value={inForce.rate} unit="/s" bounds={bounds?.rate ?? null} kind="rate" whole />
          ) : (
            '–'
          )}
          <Between bounds={bounds?.rate ?? null} />
        </Big>
        <Big title="In-flight cap">
          {inForce?.inFlightMax != null ? (
            <Meter
              value={inForce.inFlightMax}
              unit=""
              bounds={bounds?.inFlight ?? null}
              kind="cap"
              whole
            />
          ) : (
            'none'
          )}
          <Between bounds={inForce?.inFlightMax == null ? null : (bounds?.inFlight ?? null)} />
        </Big>
        <Big title="Offered">
          {traffic.seen ? `${number(Math.round(traffic.offeredPerSecond))}/s` : '–'}
        </Big>
        <Big title="Admitted">
          {traffic.seen ? `${number(Math.round(traffic.admittedPerSecond))}/s` : '–'}
        </Big>
        <Big title={view.mode === 'shadow' ? 'Would deny' : 'Denied'}>
          {traffic.seen ? `${number(Math.round(deniedOf(view)))}/s` : '–'}
          <small class="soft">{denied || would}</small>
        </Big>
      </div>
      <dl class="facts">
        <dt>What binds</dt>
        <dd>
          <strong>{bindsSentence(view)}</strong>
        </dd>
        {last !== null && view.epoch !== null && (
          <>
            <dt>Why it stands there</dt>
            <dd>
              <Outside text={last.sentence} />{' '}
              <a href={changeHash(view.limiter, { epoch: view.epoch, revision: last.revision })}>
                r{last.revision}
              </a>
              , <Time ms={last.atMs} relative />
            </dd>
          </>
        )}
        {decision !== null && (
          <>
            <dt>At its last tick</dt>
            <dd>
              <Outside text={decision.sentence} />
              {verdictSentences(decision).map((sentence) => (
                <span key={sentence}>
                  {' '}
                  <Outside text={sentence} />
                </span>
              ))}
            </dd>
          </>
        )}
        {view.holds.map((hold) => (
          <div class="pair" key={hold.kind}>
            <dt>{HELD[hold.kind]}</dt>
            <dd>
              by <Outside text={hold.by || '?'} />
              {hold.breakerHeld ? ', breaker too' : ''},{' '}
              {hold.untilMs === null ? (
                'until a person ends it'
              ) : (
                <>
                  <b class="num" data-countdown>
                    {countdown(hold.untilMs - now)}
                  </b>{' '}
                  left, until <Time ms={hold.untilMs} />
                </>
              )}
            </dd>
          </div>
        ))}
        {view.canary && (
          <>
            <dt>Canary</dt>
            <dd>
              <Outside text={canarySentence(view.canary, now)} />{' '}
              {view.canary.ended === null && (
                <a href={limiterHash(view.canary.limiter)}>
                  <Outside text={view.canary.limiter} />
                </a>
              )}
            </dd>
          </>
        )}
        {view.wouldBe && (
          <>
            <dt>Would be</dt>
            <dd>
              {stateWords(view.wouldBe.state)}, rate {number(view.wouldBe.rate)}/s, cap{' '}
              {view.wouldBe.inFlightMax ?? 'none'} (mode {view.mode}: recorded, not applied)
            </dd>
          </>
        )}
        <dt>Daemon</dt>
        <dd>
          {daemon.owner === null ? (
            'none holds the lease'
          ) : (
            <Clipped text={daemon.owner} focusable />
          )}
          {daemon.lastTickAgeMs !== null && (
            <span class="soft">, last tick {span(daemon.lastTickAgeMs)} before this</span>
          )}
        </dd>
        <dt>Policy</dt>
        <dd>
          <a href={policyHash(view.limiter)}>
            <Outside text={view.law ?? 'none adopted'} />
          </a>
          <span class="soft">
            , mode {view.mode}
            {view.policyHash ? `, ${view.policyHash.slice(0, 12)}` : ''}
          </span>
        </dd>
        {view.loop && (
          <>
            <dt>What it has learnt</dt>
            <dd>
              {loopSentence(view.loop)}{' '}
              <small class="soft">
                <Outside text={view.loop.text} />
              </small>
            </dd>
          </>
        )}
        {view.rateOnly && (
          <>
            <dt>Completions</dt>
            <dd>
              <Outside text={view.rateOnly} />
            </dd>
          </>
        )}
        {view.faults.map((fault) => (
          <div class="pair" key={fault}>
            <dt class="error">Policy fault</dt>
            <dd class="error">
              <Outside text={fault} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Big({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="figure">
      <span class="soft small">{title}</span>
      <span class="big">{children}</span>
    </div>
  );
}

function Between({ bounds }: { bounds: readonly [number, number] | null }) {
  if (bounds === null) return null;
  return (
    <small class="soft" aria-hidden="true">
      {number(bounds[0])} … {number(bounds[1])}
    </small>
  );
}
