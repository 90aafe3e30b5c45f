/** The Worker. Wires; decides nothing. */
import { createApp } from "./app.ts";
import { endpoints } from "./endpoints.ts";

export default { fetch: createApp(endpoints).fetch };
