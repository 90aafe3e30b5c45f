/** /ops/doctor: this deployment, looked at through its own bindings. */
import type { Diagnosis } from "../../doctor/examine.ts";
import type { Finding, FindingState } from "../../doctor/finding.ts";
import type { Standing } from "../../operate/standings.ts";
import { Note, StandingWord, Table } from "./parts.tsx";

const STANDINGS = {
  ok: "well",
  warn: "look",
  fail: "trouble",
  skipped: "off",
} as const satisfies Record<FindingState, Standing>;

export function Doctor({ diagnosis: { ok, findings } }: { diagnosis: Diagnosis }) {
  return (
    <>
      {ok ? (
        <Note standing="well">Nothing failed.</Note>
      ) : (
        <Note standing="trouble">
          <strong>Something is wrong</strong> with this deployment; what to do is below.
        </Note>
      )}
      <Table<Finding>
        caption="Each thing that was looked at"
        items={findings}
        columns={[
          { title: "State", cell: ({ state }) => <StandingWord standing={STANDINGS[state]} /> },
          { title: "Looked at", cell: ({ check }) => check },
          { title: "Found", cell: ({ found }) => found },
          { title: "To do", cell: ({ todo }) => todo ?? "" },
        ]}
      />
    </>
  );
}
