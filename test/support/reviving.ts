/** What brings a server back that a failed test has left paused or dead: its second try begins with one that lives. */
export const reviving = new Set<() => Promise<void>>();
