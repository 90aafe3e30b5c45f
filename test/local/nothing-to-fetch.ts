/** For tests without a thin notification: nobody asks Stripe. */
import type { FetchThin } from "../../src/stripe/thin.ts";

export const nothingToFetch: FetchThin = () =>
  Promise.reject(new Error("Bug! There is no thin notification here."));
