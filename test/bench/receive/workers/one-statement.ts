/** It has every effect in one statement: the least that does the same work. */
import { insertWithEffects } from "../statements.ts";
import { connectingWorker } from "./contestant.ts";

export default connectingWorker((paid, client) => client.query(insertWithEffects(paid)));
