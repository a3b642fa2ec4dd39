/** The login that an address may carry: apart from it where it must go apart, and known where it must not be shown. Stage: sense, report, cli. */

/** A part of an address as it was meant; a lone % stands for itself. */
export function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** Takes it out of the address, as a header: `fetch` refuses addresses with a login, and says them in full. */
export function takeLogin(url: URL): { authorization: string; passwords: string[] } | null {
  const { username, password } = url;
  if (username === '' && password === '') return null;
  url.username = '';
  url.password = '';
  const plain = unescaped(password);
  return { authorization: basicAuth(unescaped(username), plain), passwords: [plain, password] };
}
