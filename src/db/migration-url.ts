/** Where migrations go. */
import { parseConnectionString, withTlsOfTheDriver } from "./connection-string.ts";

/**
 * Of Neon's pooled host names, the direct one: its pooler is for transactions, and what a migration does
 * belongs to a session.
 *
 * @param given as for the Worker.
 * @returns null when it is no connection string.
 */
export function migrationUrl(given: string): string | null {
  const url = parseConnectionString(given);
  if (!url || hostOf(url) === "") return null;
  if (url.hostname.endsWith(".neon.tech")) url.hostname = url.hostname.replace(/-pooler(?=\.)/, "");
  return withTlsOfTheDriver(url).href;
}

/** Where a Unix socket is, only a parameter can say. */
export function hostOf({ hostname, searchParams }: URL): string {
  return searchParams.get("host") || hostname;
}
