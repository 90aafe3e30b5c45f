/** A database with the guide's tables, by the migration that the command of the guide makes. */
import type { Endpoints } from "../../src/endpoints.ts";
import { openTestbed } from "../worker/testbed.ts";
import { makeClone } from "./clone.ts";
import { endpoints } from "./with-refunds.ts";

/** What `npm run db:generate -- --name refunds` makes, and adds to no other table. */
export async function makeMigration(): Promise<string> {
  const clone = await makeClone();
  try {
    const before = await clone.list("drizzle");
    const said = await clone.run("drizzle-kit", "generate", "--name", "refunds");
    const made = (await clone.list("drizzle")).filter((name) => !before.includes(name));
    const [name] = made;
    if (name === undefined || made.length > 1 || !name.endsWith("_refunds.sql")) {
      throw new Error(`Made ${made.join() || "nothing"}. ${said.text}`);
    }
    return await clone.read(`drizzle/${name}`);
  } finally {
    await clone.remove();
  }
}

let migration: Promise<string> | undefined;

/** A receiver's options: refunds at its endpoint, and their tables in its database. */
export async function withRefunds(): Promise<{
  readonly endpoints: Endpoints;
  readonly databaseUrl: string;
}> {
  migration ??= makeMigration();
  const { databaseUrl, rows } = await openTestbed();
  for (const statement of (await migration).split("--> statement-breakpoint")) {
    await rows(statement);
  }
  return { endpoints, databaseUrl };
}
