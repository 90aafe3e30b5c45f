/** /ops/login: a name for the record, and the token. */
import { Note } from "./parts.tsx";

export interface LoginProps {
  readonly operator?: string;
  readonly refused?: boolean;
  /** Where one wanted to go. */
  readonly next: string;
}

export function Login({ operator = "", refused = false, next }: LoginProps) {
  return (
    <>
      {refused && <Note standing="trouble">That is not the token, or there is no name.</Note>}
      {next !== "/ops" && (
        <p>
          You wanted to go on to a page of ours. If you are logged in already and came by a link
          from elsewhere, <a href={next}>go on</a>: your browser keeps the session from other sites.
        </p>
      )}
      <form method="post" action="/ops/login" class="form">
        <input type="hidden" name="next" value={next} />
        <label>
          Your name <span class="hint">for the record of what you do</span>
          <input name="operator" value={operator} autocomplete="name" maxlength={100} required />
        </label>
        <label>
          OPS_TOKEN
          <input name="token" type="password" autocomplete="current-password" required />
        </label>
        <div>
          <button type="submit" class="main">
            Log in
          </button>
        </div>
      </form>
    </>
  );
}
