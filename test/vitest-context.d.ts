// oxlint-disable-next-line import/no-unassigned-import -- It makes this an addition to vitest's types.
import "vitest";

declare module "vitest" {
  /** What the global setup hands to every test. */
  export interface ProvidedContext {
    /** Connection string of the cluster's maintenance database. */
    postgresUrl: string;
    /** The same for roles that are asked for a password, by how they are asked. */
    guardedUrls: Readonly<Record<"scram" | "cleartext", string>>;
    /** Name of the migrated database to copy from. */
    template: string;
    /** Where the transaction pooler listens; null where none is installed. */
    poolerPort: number | null;
    /** How receivers get to their databases, unless a test says otherwise. */
    road: "hyperdrive" | "neon";
    /** Where the bridge from WebSockets to this machine's servers is. */
    bridgeUrl: string;
    /** One that hears nothing. */
    deafBridgeUrl: string;
    /** Connection string of a server that accepts connections and says nothing. */
    silentUrl: string;
    /** A browser, as `findChromium` found it; null where there is none. */
    chromium: string | null;
  }
}
