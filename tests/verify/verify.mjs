// Verifies deliveries with the npm package standardwebhooks: node verify.mjs DIRECTORY, where it is installed.
//
// Reads a JSON array of { secret, headers, body } (the body in base64) and writes one of true and false. The package
// does not know signatures made with a key pair; those are verified by Node's own Ed25519, as the standard says.

import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const { Webhook, WebhookVerificationError } = createRequire(join(resolve(process.argv[2]), "_"))("standardwebhooks");

function isOfKeyPair({ secret, headers }, body) {
  const x = Buffer.from(secret.slice("whpk_".length), "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const content = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
  const signatures = headers["webhook-signature"].split(" ").map((part) => part.split(","));
  return signatures.some(([version, text]) => version === "v1a" && verify(null, content, key, Buffer.from(text, "base64")));
}

function isOfSecret({ secret, headers }, body) {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

const deliveries = JSON.parse(readFileSync(0, "utf8"));
const verdicts = deliveries.map((delivery) => {
  const body = Buffer.from(delivery.body, "base64");
  return delivery.secret.startsWith("whpk_") ? isOfKeyPair(delivery, body) : isOfSecret(delivery, body);
});
process.stdout.write(JSON.stringify(verdicts));
