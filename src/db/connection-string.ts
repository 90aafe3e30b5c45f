/** Of a connection string nothing is ever repeated: it holds a password. */

/** @returns null when it is none, or something in it cannot be decoded. */
export function parseConnectionString(text: string): URL | null {
  const url = URL.parse(text.trim());
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) return null;
  try {
    decodeURIComponent(url.username + url.password + url.pathname);
    url.hostname = url.hostname.toLowerCase();
    return url;
  } catch {
    return null;
  }
}

/**
 * What `libpq` understands of TLS, in `pg`'s words. Of the modes, the name of what the driver makes of them
 * all. The certificates of the system are those that it takes anyway; with them goes, as for `libpq`, no
 * lesser mode.
 */
export function withTlsOfTheDriver(given: URL): URL {
  const url = new URL(given);
  const isOfTheSystem = url.searchParams.get("sslrootcert") === "system";
  if (isOfTheSystem) url.searchParams.delete("sslrootcert");
  if (isOfTheSystem || /^(?:prefer|require|verify-ca)$/.test(url.searchParams.get("sslmode") ?? ""))
    url.searchParams.set("sslmode", "verify-full");
  return url;
}
