/** The head of every page: where one is, how old it all is, who one is. Stage: dashboard. */
import { useState } from 'preact/hooks';
import { span } from '../../view/text.js';
import { ageMs, isStale } from '../data/freshness.js';
import { signOut } from '../data/session.js';
import { mayWrite, useSeconds, useStore } from '../data/store.js';
import { retryNow } from '../data/stream.js';
import { countdown } from '../data/times.js';
import { Outside } from '../parts/outside.jsx';
import type { Route } from '../routing.js';
import { applyTheme, nextTheme, storedTheme } from './theme.js';

const PAGES: readonly { page: Route['page']; href: string; title: string }[] = [
  { page: 'overview', href: '#/', title: 'Limiters' },
  { page: 'history', href: '#/history', title: 'What happened' },
  { page: 'policies', href: '#/policies', title: 'Policies' },
  { page: 'fleet', href: '#/fleet', title: 'Fleet' },
];

export function Top({
  page,
  onHelp,
  onSignIn,
}: {
  page: Route['page'];
  onHelp: () => void;
  onSignIn: () => void;
}) {
  const shown = page === 'limiter' ? 'overview' : page;
  return (
    <header class="top">
      <div class="top-in">
        <a class="brand" href="#/">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <path
              d="M16 3v26M16 8 7 16M16 8l9 8M9.500 17.500 16 23l6.500-5.500"
              fill="none"
              stroke="currentColor"
              stroke-width="2.6"
              stroke-linecap="round"
            />
            <circle cx="6.500" cy="16.500" r="4" fill="currentColor" />
            <circle cx="25.500" cy="16.500" r="4" fill="currentColor" />
          </svg>
          Flyball
        </a>
        <nav class="nav" aria-label="Pages">
          {PAGES.map((one) => (
            <a
              key={one.page}
              href={one.href}
              aria-current={one.page === shown ? 'page' : undefined}
            >
              {one.title}
            </a>
          ))}
        </nav>
        <div class="top-end">
          <Age />
          <ThemeButton />
          <button type="button" class="plain" onClick={onHelp} aria-label="Keyboard and help">
            <kbd>?</kbd>
          </button>
          <Who onSignIn={onSignIn} />
        </div>
      </div>
    </header>
  );
}

/** How old what the page shows is. Spoken only when it turns stale, by the banner. */
function Age() {
  useSeconds();
  const { heard, connection } = useStore();
  const now = performance.now();
  const stale = isStale(heard, now);
  const age = ageMs(heard, now);
  const live = connection.kind === 'live';
  const words =
    age === null
      ? 'connecting'
      : stale
        ? `stale: ${span(age)} old`
        : `live, ${Math.floor(age / 1000)} s old`;
  return (
    <span
      class={`age ${stale ? 'is-stale' : ''}`}
      data-state={stale ? 'stale' : live ? 'live' : connection.kind}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {stale ? (
          <path d="M2 2h12v12H2Z" fill="currentColor" />
        ) : (
          <circle cx="8" cy="8" r="6" fill="currentColor" />
        )}
      </svg>
      {words}
    </span>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme());
  const turn = () => {
    const next = nextTheme(theme);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" class="plain" onClick={turn}>
      <span class="unseen">Colours: </span>
      {theme === 'system' ? 'auto' : theme}
    </button>
  );
}

function Who({ onSignIn }: { onSignIn: () => void }) {
  const state = useStore();
  const { session } = state;
  if (session === null) return null;
  if (session.name === null) {
    return (
      <button type="button" onClick={onSignIn}>
        Sign in
      </button>
    );
  }
  return (
    <span class="who">
      <span class={`chip ${mayWrite(state) ? '' : 'held'}`}>
        <span>
          <Outside text={session.name} />: {session.role ?? 'nothing allowed'}
          {mayWrite(state) ? '' : ', read-only'}
        </span>
      </span>
      <button type="button" class="plain" onClick={() => void signOut().catch(() => {})}>
        Sign out
      </button>
    </span>
  );
}

/** What is wrong with what the page shows, across its whole width. */
export function Banners() {
  useSeconds();
  const { heard, connection, sessionFault } = useStore();
  const now = performance.now();
  const age = ageMs(heard, now);
  const stale = isStale(heard, now);
  return (
    <div role="status">
      {stale && (
        <div class="banner bad" data-banner="stale">
          <div>
            <strong>Stale: this is how it was {span(age ?? 0)} ago.</strong>
            <span>
              {heard?.redisAway != null
                ? 'Redis does not answer the daemon; limits in services hold by themselves.'
                : 'The daemon is not heard; limits in Redis hold by themselves.'}
            </span>
            {connection.kind === 'waiting' && (
              <>
                <span class="num">next try in {countdown(connection.retryAtMs - now)}</span>
                <button type="button" onClick={retryNow}>
                  Try now
                </button>
              </>
            )}
          </div>
        </div>
      )}
      {heard === null && connection.kind === 'waiting' && (
        <div class="banner warn">
          <div>
            <strong>The daemon is not heard yet.</strong>
            <span>{sessionFault ?? ''}</span>
          </div>
        </div>
      )}
    </div>
  );
}
