/** Of a connection string nothing is ever repeated: it holds a password. */

/** @returns null when it is none, or something in it cannot be decoded. */
export function parseConnectionString(text: string): URL | null {
  const url = URL.parse(text.trim());
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) return null;
  try {
    decodeURIComponent(url.username + url.password + url.pathname);
    return url;
  } catch {
    return null;
  }
}
