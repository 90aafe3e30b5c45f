/**
 * For all tests: one throw-away Postgres, in it a migrated template to copy databases from, and a
 * transaction pooler before it where one is installed; a bridge from WebSockets to it; a server that
 * accepts and stays silent; and a browser.
 */
import type { TestProject } from "vitest/node";
import { findChromium } from "../browser/chromium.ts";
import { createTemplate } from "./databases.ts";
import { guardRoles } from "./guarded-roles.ts";
import { startPgBouncer } from "./pgbouncer.ts";
import { startProxy } from "./proxy.ts";
import { startTemporaryCluster } from "./temporary-cluster.ts";
import { startWebSocketBridge } from "./websocket-bridge.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startTemporaryCluster();
  project.provide("postgresUrl", cluster.url("postgres"));
  project.provide("template", await createTemplate(cluster));
  project.provide("guardedUrls", await guardRoles(cluster));
  const pooler = await startPgBouncer(cluster.url("postgres"));
  project.provide("poolerPort", pooler?.port ?? null);
  const bridge = await startWebSocketBridge();
  project.provide("bridgeUrl", bridge.url);
  const deaf = await startWebSocketBridge({ deaf: true });
  project.provide("deafBridgeUrl", deaf.url);
  project.provide("chromium", await findChromium());
  const silent = await startProxy(cluster.url("postgres"), { fate: () => "silence" });
  project.provide("silentUrl", silent.route(cluster.url("postgres")));
  return async () => {
    await silent.close();
    await deaf.close();
    await bridge.close();
    await pooler?.stop();
    await cluster.stop();
  };
}
