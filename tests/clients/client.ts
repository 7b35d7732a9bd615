// Walks one invoice through the service with the types that openapi-typescript generated from /openapi.json and the
// client of openapi-fetch. The compiler checks every body that is sent and every field that is read.
//
//     node client.js URL INTEGRATOR_KEY DEMO_KEY openapi.json
//
// The new integrator onboards a taxpayer. The invoices are those of the demo account, for which the examples are made.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [url, integratorKey, demoKey, file] = process.argv.slice(2) as [string, string, string, string];
const document = JSON.parse(readFileSync(file, "utf8"));
const irn = "INV0001-94CD90AA-20260115";
let read = 0;

type Answer<D, E> = { data?: D; error?: E; response: Response };
type Body<P extends keyof paths, M extends keyof paths[P]> =
  paths[P][M] extends { requestBody: { content: { "application/json": infer B } } } ? B
  : paths[P][M] extends { requestBody?: { content: { "application/json": infer B } } } ? B
  : never;

function example<P extends keyof paths & string, M extends keyof paths[P] & string>(path: P, method: M): Body<P, M> {
  return document.paths[path][method].requestBody.content["application/json"].example;
}

// The body of a success; the answer must have this status.
async function good<D, E>(answer: Promise<Answer<D, E>>, status: number): Promise<D> {
  const { data, error, response } = await answer;
  assert.equal(response.status, status, `${response.url}: ${JSON.stringify(error ?? data)}`);
  assert.ok(data !== undefined, `${response.url} has no body`);
  read += 1;
  return data;
}

// The body of a failure, which every operation describes in the same way.
type Code = components["schemas"]["Failure"]["error_code"];
async function bad<D>(answer: Promise<Answer<D, { error_code: Code }>>, status: number, code: Code) {
  const { error, response } = await answer;
  assert.equal(response.status, status, response.url);
  assert.equal(error?.error_code, code, JSON.stringify(error));
  read += 1;
}

// Lists are given out as files too; this client asks for JSON only.
const client = (key: string) => createClient<paths, "application/json">({ baseUrl: url, headers: { "x-api-key": key } });
const integrator = client(integratorKey);

async function onboard() {
  const all = "/v1/system-integrators/taxpayers";
  const one = "/v1/system-integrators/taxpayers/{id}";
  const made = await good(integrator.POST(all, { body: example(all, "post") }), 201);
  const params = { path: { id: made.data.id } };
  await bad(integrator.POST(all, { body: example(all, "post") }), 422, "VALIDATION_FAILED");
  assert.equal((await good(integrator.GET(all), 200)).data.total, 1);
  assert.equal((await good(integrator.GET(one, { params }), 200)).data.tin, made.data.tin_no);
  await bad(integrator.GET(one, { params: { path: { id: made.data.id + 1_000_000 } } }), 404, "TAXPAYER_NOT_FOUND");
  const profile = "/v1/system-integrators/taxpayers/{id}/profile";
  await good(integrator.PATCH(profile, { params, body: example(profile, "patch") }), 200);
  const rotate = "/v1/system-integrators/taxpayers/{id}/api-key/rotate";
  await good(integrator.POST(rotate, { params }), 200);
  return params;
}

async function webhook(params: { path: { id: number } }) {
  const path = "/v1/system-integrators/taxpayers/{id}/webhook";
  const body = example(path, "put");
  await bad(integrator.GET(path, { params }), 422, "WEBHOOK_NOT_CONFIGURED");
  const records = [
    await good(integrator.PUT(path, { params, body }), 200),
    await good(integrator.PATCH(path, { params, body }), 200),
    await good(integrator.POST(path, { params, body }), 200),
    await good(integrator.GET(path, { params }), 200),
    await good(integrator.POST("/v1/system-integrators/taxpayers/{id}/webhook/enable", { params }), 200),
  ];
  for (const { data } of records) {
    assert.equal(data.health.state satisfies "working" | "failing" | "parked" | "disabled", "working");
    assert.equal(data.health.failures, 0);
  }
}

async function invoices(taxpayer: ReturnType<typeof client>) {
  const all = "/v1/tax-payers/invoices";
  const made = await good(taxpayer.POST(all, { body: example(all, "post") }), 201);
  const again = await good(taxpayer.POST(all, { body: example(all, "post") }), 200);
  assert.equal(again.data.id, made.data.id);
  const odd = { ...example(all, "post"), invoice_no: "INV0099", currency: "ngn" };
  await bad(taxpayer.POST(all, { body: odd }), 422, "VALIDATION_FAILED");
  const params = { path: { id: made.data.id } };
  const one = await good(taxpayer.GET("/v1/tax-payers/invoices/{id}", { params }), 200);
  assert.equal(one.data.payment_status satisfies "PENDING" | "PAID" | "REJECTED" | "PARTIAL", "PENDING");
  const full = "/v1/tax-payers/invoices/full";
  await good(taxpayer.POST(full, { body: example(full, "post") }), 201);
  const bulk = "/v1/tax-payers/invoices/bulk";
  const batch = await good(taxpayer.POST(bulk, { body: example(bulk, "post") }), 201);
  const outcome = "/v1/tax-payers/invoices/batches/{batch_no}";
  await good(taxpayer.GET(outcome, { params: { path: { batch_no: batch.data.batch_no } } }), 200);
  assert.ok((await good(taxpayer.GET(all), 200)).data.data.length > 1);
  await bad(client("tpk_unknown").GET(all), 401, "INVALID_API_KEY");
  const update = "/v1/tax-payers/invoices/update";
  await good(taxpayer.PUT(update, { body: example(update, "put") }), 200);
  const status = "/v1/tax-payers/invoices/update-status";
  await good(taxpayer.PATCH(status, { body: example(status, "patch") }), 200);
}

async function payments(taxpayer: ReturnType<typeof client>) {
  const path = "/v1/tax-payers/invoices/update-payment-status";
  const body = example(path, "patch");
  for (const status of ["partial", "PARTIAL"] as const) {
    const paid = await good(taxpayer.PATCH(path, { body: { ...body, status, amount: 10.5 } }), 200);
    assert.equal(paid.data.payment_status, "PARTIAL");
  }
  await bad(taxpayer.PATCH(path, { body: { ...body, amount: 1_000_000 } }), 422, "PAYMENT_EXCEEDS_PAYABLE");
}

async function pipeline(taxpayer: ReturnType<typeof client>) {
  const validate = "/v1/app/invoices/validate";
  const sound = example(validate, "post");
  assert.equal((await good(taxpayer.POST(validate, { body: sound }), 200)).data.irn, sound.irn);
  const odd = { ...sound, invoice_type_code: "999" };
  await bad(taxpayer.POST(validate, { body: odd }), 400, "VALIDATION_FAILED");
  const submit = "/v1/app/invoices/submit";
  const submitted = await good(taxpayer.POST(submit, { body: example(submit, "post") }), 200);
  assert.ok(typeof submitted.message === "object" && submitted.message.irn === irn);
  const transmit = "/v1/app/invoices/transmit";
  const sent = await good(taxpayer.POST(transmit, { body: example(transmit, "post") }), 200);
  assert.ok(sent.success);
  const params = { path: { irn } };
  await good(taxpayer.PATCH("/v1/app/invoices/transmit/{irn}/confirm-receipt", { params }), 200);
  const report = "/v1/app/invoices/report";
  await good(taxpayer.POST(report, { body: example(report, "post") }), 200);
  const pay = "/v1/app/invoices/{irn}/update-payment-status";
  await good(taxpayer.PATCH(pay, { params, body: example(pay, "patch") }), 200);
  await good(taxpayer.GET("/v1/app/invoices/{irn}/confirm", { params }), 200);
  await good(taxpayer.GET("/v1/app/invoices/{irn}/download", { params }), 200);
  const run = await good(taxpayer.GET("/v1/app/invoices/{irn}/run", { params }), 200);
  assert.equal(run.data.state, "succeeded");
  const status = "/v1/tax-payers/invoices/update-status";
  await bad(taxpayer.PATCH(status, { body: example(status, "patch") }), 409, "INVOICE_LOCKED");
  assert.ok((await good(taxpayer.GET("/v1/tax-payers/events"), 200)).data.events.length > 5);
}

await webhook(await onboard());
const taxpayer = client(demoKey);
await invoices(taxpayer);
await payments(taxpayer);
await pipeline(taxpayer);
console.log(`TypeScript: ${read} answers read without an error`);
