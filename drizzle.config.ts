import { defineConfig } from "drizzle-kit";

const url = process.env["DATABASE_URL"] ?? "";
if (url === "" && process.argv.includes("migrate")) {
  throw new Error("DATABASE_URL says which database to migrate; it is not set.");
}

export default defineConfig({
  dialect: "postgresql",
  schema: "./src/db/schema.ts",
  out: "./drizzle",
  dbCredentials: { url },
});
