/** Posts the JSON files of a folder as signed events, one after the other, a line for each. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "./flags.ts";
import { type Endpoint, isSuccess, post } from "./deliver.ts";

/** True when every file was answered 2xx. The bytes are posted as they are in the file. */
export async function postFolder(
  folder: string,
  endpoint: Endpoint,
  say: (line: string) => void,
): Promise<boolean> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted();
  if (files.length === 0) throw new UsageError(`--from: ${folder} holds no .json file`);
  const width = Math.max(...files.map((name) => name.length));
  let good = 0;
  let ignored = false;
  for (const name of files) {
    const body = readFileSync(join(folder, name), "utf8");
    const answer = await post(endpoint, body);
    if (isSuccess(answer)) good += 1;
    ignored ||= answer.outcome === "ignored";
    say(`${name.padEnd(width)}  ${typeOf(body).padEnd(36)}  ${answer.status}  ${answer.outcome}`);
  }
  if (ignored)
    say("Why one was ignored is in its row (ignored_reason), and in the receiver's log.");
  say(`${good} of ${files.length} files were answered with a 2xx.`);
  return good === files.length;
}

function typeOf(body: string): string {
  try {
    const event: unknown = JSON.parse(body);
    if (typeof event === "object" && event !== null && "type" in event) return String(event.type);
  } catch {
    // Not JSON: the receiver has the say.
  }
  return "(no type)";
}
