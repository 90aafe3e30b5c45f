/** Where migrations go. Errors never repeat what was given: it holds a password. */

/**
 * Of Neon's pooled host names, the direct one: its pooler is for transactions, and what a migration does
 * belongs to a session. Of the modes of TLS, the name of what the driver makes of them all.
 *
 * @param given as for the Worker.
 * @returns null when it is no connection string.
 */
export function migrationUrl(given: string): string | null {
  const url = URL.parse(given.trim());
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol) || !isDecodable(url)) return null;
  if (url.hostname.endsWith(".neon.tech")) url.hostname = url.hostname.replace(/-pooler(?=\.)/, "");
  if (/^(?:prefer|require|verify-ca)$/.test(url.searchParams.get("sslmode") ?? "")) {
    url.searchParams.set("sslmode", "verify-full");
  }
  return url.href;
}

function isDecodable({ hostname, username, password, pathname }: URL): boolean {
  try {
    return hostname !== "" && decodeURIComponent(username + password + pathname) !== "";
  } catch {
    return false;
  }
}
