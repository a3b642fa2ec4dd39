/** Dark, light or as the system says; remembered in this browser. Stage: dashboard. */

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'flyball-theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    // Storage may be forbidden: the system's choice is good enough.
    return 'system';
  }
}

/** Sets it for the page, and for the next visit. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset.theme;
  else dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is closed.
  }
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
}
