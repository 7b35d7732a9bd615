// Verifies deliveries with the examples of docs/api.md: node verify.mjs DIRECTORY, where the npm package standardwebhooks
// is installed.
//
// Reads a JSON array of { secret, headers, body } (the body in base64) and writes one of true and false.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const require = createRequire(join(resolve(process.argv[2]), "_"));
const guide = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
const examples = [...guide.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code);

function load(name) {
  const example = examples.find((code) => code.includes(`function ${name}(`));
  return new Function("require", "remember", `${example}; return ${name};`)(require, () => {});
}

const receive = load("receive");
const isOurs = load("isOurs");
const deliveries = JSON.parse(readFileSync(0, "utf8"));
const verdicts = deliveries.map(({ secret, headers, body: text }) => {
  const body = Buffer.from(text, "base64");
  return secret.startsWith("whpk_") ? isOurs(secret, headers, body) : receive(secret, headers, body) === 204;
});
process.stdout.write(JSON.stringify(verdicts));
