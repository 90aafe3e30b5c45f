/** It verifies and connects, and sends no statement: what a connection costs. */
import { connectingWorker } from "./contestant.ts";

export default connectingWorker(() => Promise.resolve());
