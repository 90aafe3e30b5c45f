/** Where migrations go. */
import { parseConnectionString } from "./connection-string.ts";

/**
 * Of Neon's pooled host names, the direct one: its pooler is for transactions, and what a migration does
 * belongs to a session. Of the modes of TLS, the name of what the driver makes of them all. The
 * certificates of the system are those that the driver takes anyway; with them goes, as for `libpq`,
 * no lesser mode.
 *
 * @param given as for the Worker.
 * @returns null when it is no connection string.
 */
export function migrationUrl(given: string): string | null {
  const url = parseConnectionString(given);
  if (!url || hostOf(url) === "") return null;
  if (url.hostname.endsWith(".neon.tech")) url.hostname = url.hostname.replace(/-pooler(?=\.)/, "");
  if (/^(?:prefer|require|verify-ca)$/.test(url.searchParams.get("sslmode") ?? "")) {
    url.searchParams.set("sslmode", "verify-full");
  }
  if (url.searchParams.get("sslrootcert") === "system") {
    url.searchParams.delete("sslrootcert");
    url.searchParams.set("sslmode", "verify-full");
  }
  return url.href;
}

/** Where a Unix socket is, only a parameter can say. */
export function hostOf({ hostname, searchParams }: URL): string {
  return searchParams.get("host") || hostname;
}
