/** What a person sees when a page cannot be shown, or what was asked for cannot be done. */
import type { Unavailable } from "../told-to-operator.ts";
import { Note } from "./parts.tsx";

export function Trouble({
  fault: { error, todo },
  acted,
}: {
  fault: Unavailable;
  /** Whether something was to be done. */
  acted: boolean;
}) {
  return (
    <>
      <Note standing="trouble">
        <strong>{acted ? "It did not come to a good end." : "This cannot be read now."}</strong>{" "}
        {error}
      </Note>
      {todo !== null && <p>{todo}</p>}
      <p>
        {acted && todo === null && (
          <>
            Whether it was done, the <a href="/ops/actions">actions</a> on record say.
          </>
        )}
        {!acted && (
          <>
            The <a href="/ops/doctor">doctor</a> looks at what can be wrong, also without a
            database.
          </>
        )}{" "}
        Meanwhile, what Stripe sends is answered with 5xx if it cannot be stored, and comes again
        for up to three days.
      </p>
    </>
  );
}

export function Refused({ problem }: { problem: string }) {
  return <Note standing="trouble">{problem}</Note>;
}

export function NotHere({ what }: { what: string }) {
  return (
    <p>
      There is no such {what}. <a href="/ops">To the overview</a>
    </p>
  );
}

export function NotLoggedIn({ next, typed }: { next: string; typed: string }) {
  return (
    <>
      <Note standing="trouble">
        <strong>Nothing was done:</strong> your session has ended.
      </Note>
      <p>
        <a href={next}>Log in again</a>, and go on from there.
      </p>
      {typed !== "" && (
        <label class="form">
          What you typed, to be copied
          <textarea rows={3} readonly>
            {typed}
          </textarea>
        </label>
      )}
    </>
  );
}
