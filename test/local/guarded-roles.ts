/** Roles that Postgres asks for a password; everybody else on this machine is trusted. */
import { Client, escapeIdentifier, escapeLiteral } from "pg";
import { LOOPBACK } from "./ports.ts";
import type { Cluster } from "./postgres.ts";

/** How a password is asked for: as Postgres does by default, or as Neon's proxy does. */
const METHODS = { scram: "scram-sha-256", cleartext: "password" } as const;
export type PasswordMethod = keyof typeof METHODS;

const ROLE = "guarded_by_";
/** With what has a meaning in a URL. */
const PASSWORD = "pw: made/up@here? 100%";

/** @returns for each method, a connection string of the maintenance database. */
export async function guardRoles(
  cluster: Pick<Cluster, "url">,
): Promise<Readonly<Record<PasswordMethod, string>>> {
  const url = cluster.url("postgres");
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const method of ["scram", "cleartext"] as const) {
      const role = escapeIdentifier(ROLE + method);
      await client.query(`create role ${role} superuser login password ${escapeLiteral(PASSWORD)}`);
    }
    // The first rule that matches is the one that counts.
    const rules = [
      ...Object.entries(METHODS).map(([method, auth]) => `host all ${ROLE}${method} all ${auth}`),
      `host all all ${LOOPBACK}/32 trust`,
    ];
    const { rows } = await client.query("show hba_file");
    await client.query(`copy (values ${rules.map((rule) => `('${rule}')`).join(", ")})
      to ${escapeLiteral(String(rows[0]?.hba_file))}`);
    await client.query("select pg_reload_conf()");
  } finally {
    await client.end();
  }
  const guarded = (method: PasswordMethod): string => {
    const own = new URL(url);
    own.username = ROLE + method;
    own.password = encodeURIComponent(PASSWORD);
    return own.href;
  };
  return { scram: guarded("scram"), cleartext: guarded("cleartext") };
}
