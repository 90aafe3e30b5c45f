/** What a server says, byte by byte, for a proxy to put in the place of what Postgres does say. */
import type { Fate, Message } from "../local/proxy.ts";

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
export function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** Whoever connects is refused as by Neon's proxy: its SQLSTATE is the same for everything. */
export function refusalOfNeon(words: string): (message: Message) => Fate {
  const fields = `SERROR\0VERROR\0CXX000\0M${words}\0\0`;
  return ({ from, n }) => {
    if (from === "client") return "pass";
    return n === 1 ? { instead: message("E", Buffer.from(fields)) } : "silence";
  };
}
