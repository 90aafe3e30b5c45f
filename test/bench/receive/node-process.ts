/** The textbook Node server as a process of its own, beside the load that it gets. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("node-server.ts", import.meta.url));
/** As many as the most connections that post to it at a time. */
const POOL_SIZE = 32;

export interface NodeServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

export async function startNodeServer(databaseUrl: string, secret: string): Promise<NodeServer> {
  const child = fork(PROGRAM, [], {
    env: {
      ...process.env,
      NODE_ENV: "production",
      DATABASE_URL: databaseUrl,
      STRIPE_WEBHOOK_SECRET: secret,
      POOL_SIZE: String(POOL_SIZE),
    },
  });
  const ended = once(child, "exit");
  const stopped = ended.then(() => {
    throw new Error("The Node server ended.");
  });
  stopped.catch(() => undefined);
  const [url]: unknown[] = await Promise.race([once(child, "message"), stopped]);
  return {
    url: String(url),
    stop: async () => {
      child.kill();
      await ended;
    },
  };
}
