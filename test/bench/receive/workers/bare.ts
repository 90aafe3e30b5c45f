/** It inserts the event, marked as processed, and does nothing for it: the least that may be kept. */
import { insertMarked } from "../statements.ts";
import { connectingWorker } from "./contestant.ts";

export default connectingWorker((paid, client) => client.query(insertMarked(paid)));
