import { defineConfig } from "drizzle-kit";

/** Makes migrations. They are applied by `npm run db:migrate`. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./src/*/schema.ts",
  out: "./drizzle",
});
