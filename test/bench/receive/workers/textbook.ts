/** The textbook form: a transaction whose eight statements are awaited one by one. */
import { bookByTextbook } from "../textbook.ts";
import { connectingWorker } from "./contestant.ts";

export default connectingWorker((paid, client) => bookByTextbook(paid, client));
