/** What the figures were taken on: without it, none of them says anything. */
import { availableParallelism, cpus, loadavg } from "node:os";
import { type Bench, withClient } from "./bench.ts";
import { printTable } from "./figures.ts";

const SETTINGS = [
  "server_version",
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "shared_buffers",
  "jit",
] as const;

/** The load is that of the minute before. */
export async function printMachine(bench: Bench): Promise<void> {
  const postgres = await withClient(bench.cluster.url("postgres"), async (client) => {
    const shown: string[] = [];
    for (const name of SETTINGS) {
      const { rows } = await client.query<Record<string, string>>(`show ${name}`);
      shown.push(`${name === "server_version" ? "" : `${name} `}${rows[0]?.[name]}`);
    }
    return shown.join(", ");
  });
  const processor = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"})`;
  printTable(
    ["machine", ""],
    [
      ["processor", `${processor}, load average ${loadavg()[0]?.toFixed(1)}`],
      ["Postgres", `${postgres}; on the same machine, without pooler or password`],
      ["Node", `${process.version}, ${process.platform} ${process.arch}`],
    ],
  );
}
