import "vitest";

declare module "vitest" {
  /** What the global setup hands to every test. */
  export interface ProvidedContext {
    /** Connection string of the cluster's maintenance database. */
    postgresUrl: string;
    /** Name of the migrated database to copy from. */
    template: string;
  }
}
