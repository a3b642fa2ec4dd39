/** A dialog in front of the page: the browser keeps the focus in it, Escape closes it. Stage: dashboard. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export function Modal({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once, not a frame later: a key pressed in between would go to the page behind.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    // What is asked for comes first; else the browser takes the cross, and Enter closes what was just opened.
    shown?.querySelector<HTMLElement>('.dialog-body :is(input, select)')?.focus();
    return () => {
      // Behind an open dialog nothing takes the focus; nobody needs to hear that this one closes.
      shown?.addEventListener('close', (event) => event.stopImmediatePropagation(), true);
      shown?.close();
      const still = before instanceof HTMLElement && before.isConnected;
      // Opening it moved nothing of the page, so closing it moves nothing beneath the head that stays in view.
      (still ? before : document.getElementById('main'))?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose} onKeyDown={ignoreHeldEnter}>
      <div class="dialog-head">
        <h2>{title}</h2>
        <button
          type="button"
          class="plain"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          ✕
        </button>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

/** The Enter that opened the dialog, still down, must not say yes to it. */
function ignoreHeldEnter(event: KeyboardEvent): void {
  if (event.key === 'Enter' && event.repeat) event.preventDefault();
}
