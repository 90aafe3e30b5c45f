/**
 * In the place of Neon's driver, a fifth of the bundle, wherever Hyperdrive is the way to the database:
 * `[alias]` in wrangler.toml puts it there.
 */
import { DatabaseUnavailable } from "./unavailable.ts";

/** @throws DatabaseUnavailable whenever it is used. */
export function Client(): never {
  throw new DatabaseUnavailable(
    "DATABASE_URL leads to it, and Neon's driver was left out: take [alias] out of wrangler.toml",
  );
}
