/** What has just been done, on the page where one goes on: from its record, which cannot be made up. */
import type { DoneRecord } from "../../operate/done.ts";
import { counted, number } from "../../operate/wording.ts";
import { Note, Time } from "./parts.tsx";

export function JustDone({ record, agreed }: { record: DoneRecord; agreed: number | null }) {
  const { action, subject, affected, why, at } = record;
  const isLess = agreed !== null && affected < agreed;
  return (
    <Note standing={isLess ? "look" : "well"}>
      <strong>{sentence(action, affected)}</strong>{" "}
      {isLess &&
        `You agreed to ${number(agreed)}: the others were not as you saw them, or could not be taken in time. `}
      Done by you, <Time at={at} />, for <bdi>{subject}</bdi>: “<bdi>{why}</bdi>”.{" "}
      <a href="/ops/actions">All actions</a>
    </Note>
  );
}

function sentence(action: DoneRecord["action"], affected: number): string {
  const one = affected === 1;
  switch (action) {
    case "requeue_events":
      return `${counted(affected, "event")} ${one ? "was" : "were"} requeued, due at once.`;
    case "requeue_messages":
      return `${counted(affected, "message")} ${one ? "leaves" : "leave"} again with the next ticks.`;
    case "resolve_discrepancy":
      return `${counted(affected, "discrepancy")} ${one ? "is" : "are"} resolved.`;
  }
}
