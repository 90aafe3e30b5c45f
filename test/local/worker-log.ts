/** Shows what the Worker writes, as it writes it, without its secrets. */
import { open } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { WORKER_LOG } from "./worker.ts";

const POLL_MS = 300;
const CHUNK_BYTES = 64 * 1024;

/** Copies the log to the standard output; rejects when aborted. */
export async function followWorkerLog(
  secrets: readonly string[],
  signal: AbortSignal,
): Promise<never> {
  const file = await open(WORKER_LOG);
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(CHUNK_BYTES);
  let unfinished = "";
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer);
      if (bytesRead === 0) {
        await pause(POLL_MS, undefined, { signal });
        continue;
      }
      // Whole lines only, so that no secret is cut in two and missed.
      const lines = (
        unfinished + decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
      ).split("\n");
      unfinished = lines.pop() ?? "";
      for (const line of lines) process.stdout.write(`${hide(secrets, line)}\n`);
    }
  } finally {
    await file.close();
  }
}

function hide(secrets: readonly string[], line: string): string {
  return secrets.reduce((text, secret) => (secret ? text.replaceAll(secret, "***") : text), line);
}
