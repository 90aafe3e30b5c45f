/** The instrument itself: how a WebSocket ends when the session behind it does. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, inject, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { LOOPBACK } from "./ports.ts";

const ABNORMAL = 1006;
const WITHOUT_A_STATUS = 1005;
const TERMINATE = Buffer.from("X\0\0\0\x04");
const QUERY = Buffer.from("Q\0\0\0\x0dselect 1\0");
const FATAL = Buffer.from("E\0\0\0\x0dSFATAL\0\0");

interface Ended {
  readonly code: number;
  readonly heard: readonly string[];
}

/** What the client of a bridge to a server that does this at its first message gets to know. */
async function ask(said: Buffer, answer: (session: Socket) => void): Promise<Ended> {
  const server = createServer((session) => {
    session.on("error", () => undefined);
    session.once("data", () => answer(session));
  });
  server.listen(0, LOOPBACK);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("Bug! This is TCP.");
  const client = new WebSocket(`${inject("bridgeUrl")}?address=${LOOPBACK}:${address.port}`);
  const heard: string[] = [];
  client.on("message", (data: Buffer) => heard.push(data.toString()));
  client.on("open", () => client.send(said));
  const [code] = await once(client, "close");
  return { code: Number(code), heard };
}

test.each<[string, Buffer, (session: Socket) => void, Ended]>([
  [
    "that the client said goodbye to is closed",
    TERMINATE,
    (session) => session.end(),
    { code: WITHOUT_A_STATUS, heard: [] },
  ],
  [
    "that Postgres ended with a FATAL is closed behind it",
    QUERY,
    (session) => session.end(FATAL),
    { code: WITHOUT_A_STATUS, heard: [FATAL.toString()] },
  ],
  [
    "that is cut behind an answer is cut, and the answer arrives",
    QUERY,
    (session) => session.end("answer"),
    { code: ABNORMAL, heard: ["answer"] },
  ],
  [
    "that is cut before an answer is cut",
    QUERY,
    (session) => session.destroy(),
    { code: ABNORMAL, heard: [] },
  ],
  [
    "that is reset is cut",
    QUERY,
    (session) => session.resetAndDestroy(),
    { code: ABNORMAL, heard: [] },
  ],
])("a session %s", async (_, said, answer, ended) => {
  expect(await ask(said, answer)).toEqual(ended);
});

test("a server that is not there is a WebSocket that is cut", async () => {
  const client = new WebSocket(`${inject("bridgeUrl")}?address=${LOOPBACK}:1`);
  const [code] = await once(client, "close");
  expect(code).toBe(ABNORMAL);
});
