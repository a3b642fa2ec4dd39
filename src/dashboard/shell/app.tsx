/** The whole page: which part of it the address names, the stream it needs, and what stands around it. Stage: dashboard. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isStale } from '../data/freshness.js';
import { useStore } from '../data/store.js';
import { leave, retryNow, watch } from '../data/stream.js';
import { FleetPage } from '../fleet/page.jsx';
import { HistoryPage } from '../history/page.jsx';
import { LimiterPage } from '../limiter/page.jsx';
import { isTyping } from '../overview/keys.js';
import { Overview } from '../overview/page.jsx';
import { Modal } from '../parts/modal.jsx';
import { outside } from '../parts/outside.jsx';
import { PoliciesPage } from '../policies/page.jsx';
import { isSamePage, parseRoute, type Route, watchedBy } from '../routing.js';
import { Help } from './help.jsx';
import { SignInForm } from './sign-in.jsx';
import { Banners, Top } from './top.jsx';

export function App() {
  const route = useRoute();
  const { session, sessionFault, heard } = useStore();
  const [front, setFront] = useState<'help' | 'sign-in' | null>(null);
  const main = useRef<HTMLElement>(null);
  const limiter = watchedBy(route);
  // Who hears the stream may read, whatever else is not known yet.
  const mayRead = session === null ? heard !== null || null : session.role !== null;
  useEffect(() => {
    if (mayRead) watch(limiter);
    else if (mayRead === false) leave();
  }, [limiter, mayRead]);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '?' || isTyping(event)) return;
      event.preventDefault();
      setFront('help');
    };
    const onLook = () => {
      if (document.visibilityState === 'visible') retryNow();
    };
    document.addEventListener('keydown', onKey);
    document.addEventListener('visibilitychange', onLook);
    addEventListener('online', onLook);
    return () => {
      document.removeEventListener('keydown', onKey);
      document.removeEventListener('visibilitychange', onLook);
      removeEventListener('online', onLook);
    };
  }, []);
  useStalePage(heard);

  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <Top page={route.page} onHelp={() => setFront('help')} onSignIn={() => setFront('sign-in')} />
      <Banners />
      <main id="main" ref={main} tabIndex={-1}>
        {mayRead === false ? (
          <div class="sheet sign-in">
            <h1>Sign in</h1>
            <SignInForm onDone={() => {}} />
          </div>
        ) : mayRead === null ? (
          <p class="empty">{sessionFault ?? 'Connecting…'}</p>
        ) : (
          <Page route={route} onSignIn={() => setFront('sign-in')} />
        )}
      </main>
      {front === 'help' && <Help onClose={() => setFront(null)} />}
      {front === 'sign-in' && (
        <Modal title="Sign in" onClose={() => setFront(null)}>
          <SignInForm onDone={() => setFront(null)} />
        </Modal>
      )}
    </>
  );
}

function Page({ route, onSignIn }: { route: Route; onSignIn: () => void }) {
  switch (route.page) {
    case 'overview':
      return <Overview route={route} />;
    case 'limiter':
      return (
        <LimiterPage key={route.name} {...{ name: route.name, change: route.change, onSignIn }} />
      );
    case 'policies':
      return <PoliciesPage name={route.name} />;
    case 'history':
      return <HistoryPage shown={route.shown} />;
    case 'fleet':
      return <FleetPage />;
    case 'unknown':
      return (
        <p class="empty">
          There is no page {outside(route.path)}. <a href="#/">All limiters</a>
        </p>
      );
  }
}

/** The address after the `#`; another page begins at its top, with the focus there; of the same page both stay. */
function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useLayoutEffect(() => {
    let at = location.hash;
    const onHash = () => {
      const stays = isSamePage(at, location.hash);
      at = location.hash;
      setRoute(parseRoute(at));
      if (stays) return;
      scrollTo(0, 0);
      document.getElementById('main')?.focus({ preventScroll: true });
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  return route;
}

/** The whole page shows that it is the past. */
function useStalePage(heard: Parameters<typeof isStale>[0]): void {
  useEffect(() => {
    const look = () =>
      document.body.classList.toggle('is-stale-page', isStale(heard, performance.now()));
    look();
    const timer = setInterval(look, 500);
    return () => clearInterval(timer);
  }, [heard]);
}
