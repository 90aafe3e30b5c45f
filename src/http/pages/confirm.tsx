/** What a person is asked before anything is done: how many, what will happen, and why. */
import type { Child } from "hono/jsx";
import { counted, number } from "../../operate/wording.ts";
import { Note, Nothing } from "./parts.tsx";

export interface Confirmation {
  /** Where the form goes. */
  readonly action: string;
  /** What it is about, as the form sends it back. */
  readonly fields: Readonly<Record<string, string>>;
  /** How many it may be at most; 0: there is nothing to do. */
  readonly count: number;
  readonly question: Child;
  /** What will happen. */
  readonly then: Child;
  readonly button: string;
  readonly why: { readonly name: "why" | "note"; readonly label: string };
  readonly back: string;
  /** What was typed before, and what was wrong with it. */
  readonly typed?: string;
  readonly problem?: string | undefined;
}

export function Confirm(props: Confirmation) {
  const { action, fields, count, question, then, button, why, back, typed, problem } = props;
  if (count === 0) {
    return (
      <>
        {problem !== undefined && <Note standing="trouble">{problem}</Note>}
        <div>{question}</div>
        <Nothing>There is nothing to do: none is like that, or not any more.</Nothing>
        <p>
          <a href={back}>Back</a>
        </p>
      </>
    );
  }
  return (
    <>
      {problem !== undefined && <Note standing="trouble">{problem}</Note>}
      <div>{question}</div>
      <div>{then}</div>
      <form method="post" action={action} class="form">
        {Object.entries({ ...fields, count: String(count) }).map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <label>
          {why.label} <span class="hint">It goes on record, with your name.</span>
          <textarea name={why.name} rows={3} maxlength={500} required>
            {typed ?? ""}
          </textarea>
        </label>
        <div>
          <button type="submit" class="main">
            {button}
          </button>{" "}
          <a href={back}>Leave it alone</a>
        </div>
      </form>
    </>
  );
}

/** None of those that were agreed to was as it was shown any more. */
export function NothingDone({ back }: { back: string }) {
  return (
    <>
      <Note standing="look">
        <strong>Nothing was changed.</strong> None of those that you saw is as it was: somebody else
        may have done it, or it was done before.
      </Note>
      <p>
        <a href={back}>Look at it anew</a>, or at the <a href="/ops/actions">actions</a> on record.
      </p>
    </>
  );
}

/** How many, and what is taken of more than can be counted. */
export function Many({ count, more, what }: { count: number; more: boolean; what: string }) {
  if (!more) {
    return (
      <p>
        <strong>{counted(count, what)}</strong>.
      </p>
    );
  }
  return (
    <p>
      <strong>More than {counted(count, what)}</strong>: the oldest {number(count)} are taken, the
      rest is left for another time.
    </p>
  );
}
