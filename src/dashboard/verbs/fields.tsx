/** What a verb asks for: a revision, numbers, how long. Stage: dashboard. */
import type { AuditRecord, Verb } from '../../api/types.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { current, nowMs } from '../data/store.js';
import { localTime } from '../data/times.js';
import { outside } from '../parts/outside.jsx';
import { BoundsFields } from './bounds-fields.jsx';
import { type Draft, holdChoices, MODES, VERBS } from './specs.js';

export interface FieldsProps {
  verb: Verb;
  limiter: string;
  draft: Draft;
  onChange: (part: Partial<Draft>) => void;
}

export function Fields({ verb, limiter, draft, onChange }: FieldsProps) {
  const spec = VERBS[verb];
  if (verb === 'promote') return <Ladder draft={draft} onChange={onChange} />;
  if (!spec.holds) return null;
  return (
    <div class="fields">
      {verb === 'rollback' && <Revision limiter={limiter} draft={draft} onChange={onChange} />}
      {verb === 'pin' && <Numbers limiter={limiter} draft={draft} onChange={onChange} />}
      {verb === 'bounds' && <BoundsFields limiter={limiter} draft={draft} onChange={onChange} />}
      <div class="field">
        <label for="verb-hold">For how long</label>
        <select
          id="verb-hold"
          disabled={draft.clear}
          value={draft.hold}
          onChange={(event) => onChange({ hold: Number(event.currentTarget.value) })}
        >
          {holdChoices(verb).map(({ title }, i) => (
            <option key={title} value={i}>
              {title}
            </option>
          ))}
        </select>
      </div>
      {spec.holdsBreaker && (
        <label class="check">
          <input
            type="checkbox"
            checked={draft.holdBreaker}
            onChange={(event) => onChange({ holdBreaker: event.currentTarget.checked })}
          />
          hold the breaker too (it will not open by itself)
        </label>
      )}
    </div>
  );
}

function Ladder({ draft, onChange }: Pick<FieldsProps, 'draft' | 'onChange'>) {
  return (
    <div class="fields">
      <div class="field">
        <label for="verb-mode">To mode</label>
        <select
          id="verb-mode"
          value={draft.mode}
          onChange={(event) => {
            const mode = MODES.find((one) => one === event.currentTarget.value);
            if (mode !== undefined) onChange({ mode });
          }}
        >
          {MODES.map((mode) => (
            <option key={mode} value={mode}>
              {mode === 'file' ? 'what the policy file says' : mode}
            </option>
          ))}
        </select>
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.anyway}
          onChange={(event) => onChange({ anyway: event.currentTarget.checked })}
        />
        though the evidence is not enough (say why)
      </label>
    </div>
  );
}

function Revision({ limiter, draft, onChange }: Omit<FieldsProps, 'verb'>) {
  const asked = useAnswer(limiter, () => api.audit(limiter, { limit: 100, kind: 'change' }));
  const entries = (asked.value?.entries ?? []).filter((entry) => entry.after !== null);
  const now = current().rows.get(limiter);
  // The newest is what stands now: going back begins with the one before it.
  const choices = entries.filter(
    (entry) => entry.epoch !== now?.epoch || entry.revision !== now?.revision,
  );
  const known = choices.some((entry) => refOf(entry) === draft.to);
  return (
    <div class="field whole">
      <label for="verb-to">To the numbers of</label>
      <select
        id="verb-to"
        value={draft.to}
        onChange={(event) => onChange({ to: event.currentTarget.value })}
      >
        {draft.to === '' && <option value="">choose a revision…</option>}
        {draft.to !== '' && !known && (
          <option value={draft.to}>revision {draft.to.split('.')[1]}</option>
        )}
        {choices.map((entry) => (
          <option key={entry.id} value={refOf(entry)}>
            {revisionText(entry)}
          </option>
        ))}
      </select>
      <small>{asked.fault ?? 'What stood after that change.'}</small>
    </div>
  );
}

function refOf({ epoch, revision }: AuditRecord): string {
  return `${epoch}.${revision}`;
}

function revisionText(entry: AuditRecord): string {
  const { after, revision, reason } = entry;
  const cap = after?.inFlightMax ? `, cap ${number(after.inFlightMax)}` : '';
  return `r${revision} · ${localTime(entry.atMs, nowMs())} · rate ${number(after?.rate ?? 0)}/s${cap} · ${outside(reason)}`;
}

function Numbers({ limiter, draft, onChange }: Omit<FieldsProps, 'verb'>) {
  const view = current().rows.get(limiter);
  const rate = view?.bounds?.rate;
  const cap = view?.bounds?.inFlight;
  return (
    <>
      <div class="field">
        <label for="verb-rate">Rate, per second</label>
        <input
          id="verb-rate"
          inputMode="decimal"
          autocomplete="off"
          placeholder={view?.inForce ? `now ${number(view.inForce.rate)}` : ''}
          value={draft.rate}
          onInput={(event) => onChange({ rate: event.currentTarget.value })}
        />
        {rate && (
          <small>
            bounds {number(rate[0])} … {number(rate[1])}
          </small>
        )}
      </div>
      {view?.inForce?.inFlightMax != null && (
        <div class="field">
          <label for="verb-cap">In-flight cap</label>
          <input
            id="verb-cap"
            inputMode="numeric"
            autocomplete="off"
            placeholder={`now ${number(view.inForce.inFlightMax)}`}
            value={draft.inFlight}
            onInput={(event) => onChange({ inFlight: event.currentTarget.value })}
          />
          {cap && (
            <small>
              bounds {number(cap[0])} … {number(cap[1])}
            </small>
          )}
        </div>
      )}
    </>
  );
}
