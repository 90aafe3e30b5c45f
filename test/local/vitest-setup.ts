/** For all tests: one throw-away Postgres, and in it a migrated template to copy databases from. */
import type { TestProject } from "vitest/node";
import { createTemplate } from "./databases.ts";
import { startTemporaryCluster } from "./temporary-cluster.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startTemporaryCluster();
  project.provide("postgresUrl", cluster.url("postgres"));
  project.provide("template", await createTemplate(cluster));
  return cluster.stop;
}
