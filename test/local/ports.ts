/** Which ports are free on this machine's loopback address. */
import { createServer } from "node:net";

export const LOOPBACK = "127.0.0.1";

/** The preferred port if nothing listens there, else one that the system gives. */
export async function choosePort(preferred: number): Promise<number> {
  return (await tryPort(preferred)) ?? (await freePort());
}

export async function freePort(): Promise<number> {
  const port = await tryPort(0);
  if (port === undefined) throw new Error(`No port can be opened on ${LOOPBACK}`);
  return port;
}

function tryPort(port: number): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const server = createServer();
  server.once("error", () => resolve(undefined));
  server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
    const address = server.address();
    const opened = typeof address === "object" ? address?.port : undefined;
    server.close(() => resolve(opened));
  });
  return promise;
}
