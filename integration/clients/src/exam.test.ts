import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

// The shop to which docs/exam.md links.
test("the shop passes the exam", () => {
  const binary = process.env["MOCKGATEWAY"] ?? "mockgateway";
  const shop = fileURLToPath(new URL("shop.js", import.meta.url));
  const exam = spawnSync(binary, ["exam", "-budget", "5m", "-grace", "1s", "--", process.execPath, shop], { encoding: "utf8" });
  assert.equal(exam.status, 0, `${exam.stdout}\n${exam.stderr}`);
});
