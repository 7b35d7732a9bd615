//! Callers, one a role. Each knows its key and its paths; the answers are judged by the tests.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::Client;
use crate::documents::Registration;
use crate::patience::eventually;

pub const INVOICES: &str = "/v1/tax-payers/invoices";
pub const FULL: &str = "/v1/tax-payers/invoices/full";
pub const UPDATE: &str = "/v1/tax-payers/invoices/update";
pub const BULK: &str = "/v1/tax-payers/invoices/bulk";
pub const BATCHES: &str = "/v1/tax-payers/invoices/batches";
pub const UPDATE_STATUS: &str = "/v1/tax-payers/invoices/update-status";
pub const UPDATE_PAYMENT: &str = "/v1/tax-payers/invoices/update-payment-status";
pub const INBOX: &str = "/v1/tax-payers/supplier-invoices";
pub const GET_SUPPLIER_INVOICE: &str = "/v1/tax-payers/invoices/get-supplier-invoice";
pub const ACKNOWLEDGE: &str = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";
pub const EVENTS: &str = "/v1/tax-payers/events";
pub const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";
pub const SUBMIT: &str = "/v1/app/invoices/submit";
pub const VALIDATE: &str = "/v1/app/invoices/validate";
pub const REPORT: &str = "/v1/app/invoices/report";
pub const TRANSMIT: &str = "/v1/app/invoices/transmit";

/// Declares a role: a caller with a kind of key.
macro_rules! role {
    ($(#[$doc:meta])* $role:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $role(Client);

        impl $role {
            pub fn new(client: &Client, key: &str) -> Self {
                Self(client.with_key(key))
            }
        }

        impl std::ops::Deref for $role {
            type Target = Client;

            fn deref(&self) -> &Client {
                &self.0
            }
        }
    };
}

role!(
    /// Acts for the taxpayers it onboarded.
    Integrator
);
role!(
    /// Runs this deployment.
    Operator
);
/// Calls the access point surface, with the key of a taxpayer or of an integrator.
#[derive(Debug, Clone)]
pub struct AppClient(Client);

impl std::ops::Deref for AppClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Integrator {
    pub async fn create_taxpayer(&self, body: &Value) -> Answer {
        self.send("POST", TAXPAYERS, body).await
    }

    pub async fn change_profile(&self, id: i64, body: &Value) -> Answer {
        self.send("PATCH", &format!("{TAXPAYERS}/{id}/profile"), body).await
    }

    pub async fn rotate_api_key(&self, id: i64) -> Answer {
        self.call("POST", &format!("{TAXPAYERS}/{id}/api-key/rotate")).await
    }

    pub async fn set_webhook(&self, id: i64, url: &str, events: &[&str]) -> Answer {
        let body = json!({ "webhook_url": url, "enabled_events": events });
        self.send("PUT", &webhook(id), &body).await
    }

    pub async fn webhook(&self, id: i64) -> Answer {
        self.get(&webhook(id)).await
    }

    /// Returns the new signing secret.
    pub async fn rotate_secret(&self, id: i64) -> String {
        let answer = self.call("POST", &format!("{}/secret", webhook(id))).await.expect_status(200);
        answer.data()["secret"].as_str().unwrap().to_owned()
    }

    /// Returns the public key of the new pair.
    pub async fn rotate_key_pair(&self, id: i64) -> String {
        let path = format!("{}/secret", webhook(id));
        let answer = self.send("POST", &path, &json!({ "type": "ed25519" })).await.expect_status(200);
        answer.data()["public_key"].as_str().unwrap().to_owned()
    }

    pub async fn test_webhook(&self, id: i64) -> Answer {
        self.call("POST", &format!("{}/test", webhook(id))).await
    }

    pub async fn enable_webhook(&self, id: i64, replay: &str) -> Answer {
        self.send("POST", &format!("{}/enable", webhook(id)), &json!({ "replay": replay })).await
    }

    pub async fn deliveries(&self, id: i64, query: &str) -> Answer {
        self.get(&format!("{}/deliveries{query}", webhook(id))).await
    }

    /// Delivers a part of the log once more, from a position on.
    pub async fn replay(&self, id: i64, since: Value, only: &str) -> Answer {
        let body = json!({ "since": since, "only": only });
        self.send("POST", &format!("{}/replay", webhook(id)), &body).await
    }

    pub async fn replays(&self, id: i64, rest: &str) -> Answer {
        self.get(&format!("{}/replays{rest}", webhook(id))).await
    }

    pub async fn cancel_replay(&self, id: i64, replay: &str) -> Answer {
        self.call("POST", &format!("{}/replays/{replay}/cancel", webhook(id))).await
    }

    pub fn app(&self) -> AppClient {
        AppClient(self.0.clone())
    }
}

/// Returns the path that relays a payment status.
pub fn relay(irn: &str) -> String {
    format!("/v1/app/invoices/{irn}/update-payment-status")
}

impl Operator {
    pub async fn runs(&self, query: &str) -> Answer {
        self.get(&format!("/ops/pipeline/runs{query}")).await
    }

    /// Pauses, resumes, retries or cancels a run.
    pub async fn move_run(&self, id: &str, to: &str) -> Answer {
        let body = json!({ "reason": format!("to {to} it") });
        self.send("POST", &format!("/ops/pipeline/runs/{id}/{to}"), &body).await
    }

    /// Returns the latest run of a taxpayer, with its steps.
    pub async fn run_of(&self, taxpayer: &Taxpayer) -> Value {
        let listed = self.runs(&format!("?taxpayer_id={}", taxpayer.id)).await.expect_status(200);
        let id = listed.data()["data"][0]["id"].as_str().unwrap().to_owned();
        self.runs(&format!("/{id}")).await.expect_status(200).data().clone()
    }

    pub async fn dead_letters(&self, query: &str) -> Answer {
        self.get(&format!("/ops/webhooks/dead-letters{query}")).await
    }

    /// Compares a day of a taxpayer with the authority's ledger.
    pub async fn reconcile(&self, taxpayer: i64, day: &str) -> Answer {
        let body = json!({ "taxpayer_id": taxpayer, "day": day });
        self.send("POST", "/ops/reconciliations", &body).await
    }

    pub async fn reconciliations(&self, query: &str) -> Answer {
        self.get(&format!("/ops/reconciliations{query}")).await
    }

    pub async fn audit(&self, query: &str) -> Answer {
        self.get(&format!("/ops/audit{query}")).await
    }
}

pub fn webhook(id: i64) -> String {
    format!("{TAXPAYERS}/{id}/webhook")
}

/// Creates, reads, edits and tracks its own invoices.
#[derive(Debug, Clone)]
pub struct Taxpayer {
    client: Client,
    pub id: i64,
    pub registration: Registration,
}

impl AsRef<Registration> for Taxpayer {
    fn as_ref(&self) -> &Registration {
        &self.registration
    }
}

impl std::ops::Deref for Taxpayer {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Taxpayer {
    /// Returns the taxpayer that was onboarded with this body.
    pub fn new(client: &Client, key: &str, id: i64, body: &Value) -> Self {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self {
            client: client.with_key(key),
            id,
            registration: Registration {
                service_id: text("authority_service_id"),
                business_id: text("authority_business_id"),
                tin: text("tin_no"),
            },
        }
    }

    pub fn app(&self) -> AppClient {
        AppClient(self.client.clone())
    }

    pub async fn create_invoice(&self, body: &Value) -> Answer {
        self.send("POST", INVOICES, body).await
    }

    pub async fn create_full(&self, body: &Value) -> Answer {
        self.send("POST", FULL, body).await
    }

    /// Creates a full invoice and returns it.
    pub async fn full(&self, body: &Value) -> Value {
        self.create_full(body).await.expect_status(201).data().clone()
    }

    pub async fn update(&self, body: &Value) -> Answer {
        self.send("PUT", UPDATE, body).await
    }

    /// Returns an invoice with its lines and its ledger.
    pub async fn whole(&self, invoice: &Value) -> Value {
        let path = format!("{INVOICES}/{}?include=lines,ledger", invoice["id"]);
        self.get(&path).await.expect_status(200).data().clone()
    }

    /// Creates an invoice and returns it.
    pub async fn invoice(&self, body: &Value) -> Value {
        self.create_invoice(body).await.expect_status(201).data().clone()
    }

    pub async fn create_batch(&self, invoices: &[Value]) -> Answer {
        self.send("POST", BULK, &json!({ "invoices": invoices })).await
    }

    /// Returns the batch that an answer names.
    pub async fn outcome(&self, created: &Answer) -> Value {
        let batch_no = created.data()["batch_no"].as_str().unwrap();
        self.get(&format!("{BATCHES}/{batch_no}")).await.expect_status(200).data().clone()
    }

    pub async fn timeline(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}/timeline")).await
    }

    pub async fn get_invoice(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}")).await
    }

    /// Reads an invoice again.
    pub async fn reread(&self, invoice: &Value) -> Value {
        self.get_invoice(&invoice["id"]).await.expect_status(200).data().clone()
    }

    pub async fn list_invoices(&self, query: &str) -> Answer {
        self.get(&format!("{INVOICES}{query}")).await
    }

    pub async fn set_status(&self, invoice: &Value, status: &str) -> Answer {
        let body = json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "as agreed",
        });
        self.send("PATCH", UPDATE_STATUS, &body).await
    }

    pub async fn pay(&self, body: &Value) -> Answer {
        self.send("PATCH", UPDATE_PAYMENT, body).await
    }

    pub async fn inbox(&self, query: &str) -> Answer {
        self.get(&format!("{INBOX}{query}")).await
    }

    /// Returns the lines of the inbox, newest first.
    pub async fn inbox_lines(&self) -> Vec<Value> {
        let answer = self.inbox("").await.expect_status(200);
        answer.data()["data"].as_array().unwrap().clone()
    }

    pub async fn supplier_invoice(&self, irn: &str) -> Answer {
        self.send("POST", GET_SUPPLIER_INVOICE, &json!({ "supplier_irn": irn })).await
    }

    pub async fn acknowledge(&self, irn: &str) -> Answer {
        self.send("POST", ACKNOWLEDGE, &json!({ "supplier_irn": irn })).await
    }

    /// Counts the events of a name in the log.
    pub async fn count_of(&self, name: &str) -> usize {
        self.event_names().await.iter().filter(|event| *event == name).count()
    }

    /// Returns the events of this taxpayer, from the first on.
    pub async fn events(&self) -> Vec<Value> {
        let answer = self.get(&format!("{EVENTS}?limit=1000")).await.expect_status(200);
        answer.data()["events"].as_array().unwrap().clone()
    }

    /// Returns the events about an invoice.
    pub async fn invoice_events(&self) -> Vec<Value> {
        self.events().await.into_iter().filter(|event| event["irn"].is_string()).collect()
    }

    /// Returns the names of the events about an invoice, in order.
    pub async fn invoice_event_names(&self) -> Vec<String> {
        let events = self.invoice_events().await;
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the names of the events, in order.
    pub async fn event_names(&self) -> Vec<String> {
        self.events().await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

impl AppClient {
    pub async fn submit(&self, body: &Value) -> Answer {
        self.send("POST", SUBMIT, body).await
    }

    pub async fn submit_async(&self, body: &Value) -> Answer {
        let request = self.request("POST", SUBMIT).header("prefer", "respond-async");
        Answer::to(request.json(body)).await
    }

    pub async fn transmit(&self, irn: &str) -> Answer {
        self.send("POST", TRANSMIT, &json!({ "irn": irn })).await
    }

    pub async fn confirm_receipt(&self, irn: &str) -> Answer {
        self.call("PATCH", &format!("{TRANSMIT}/{irn}/confirm-receipt")).await
    }

    pub async fn confirm(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/confirm")).await
    }

    pub async fn validate(&self, body: &Value) -> Answer {
        self.send("POST", VALIDATE, body).await
    }

    pub async fn report(&self, body: &Value) -> Answer {
        self.send("POST", REPORT, body).await
    }

    /// Relays a payment status.
    pub async fn pay(&self, irn: &str, status: &str) -> Answer {
        self.send("PATCH", &relay(irn), &json!({ "payment_status": status })).await
    }

    pub async fn download(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/download")).await
    }

    /// Returns the run of an operation that is not the one shown by default.
    pub async fn run_of(&self, irn: &str, operation: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run?operation={operation}")).await
    }

    pub async fn run(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run")).await
    }
}

impl AppClient {
    /// Submits until the run has ended, as a caller does that is told to come again.
    pub async fn submit_to_the_end(&self, body: &Value) -> Answer {
        to_the_end("a submission", async || self.submit(body).await).await
    }

    /// Transmits until the run has ended.
    pub async fn transmit_to_the_end(&self, irn: &str) -> Answer {
        to_the_end("a transmission", async || self.transmit(irn).await).await
    }

    /// Reports until the run has ended.
    pub async fn report_to_the_end(&self, body: &Value) -> Answer {
        to_the_end("a report", async || self.report(body).await).await
    }
}

/// Asks again while the answer allows it: how far a run gets while it is waited for depends on the load of the machine.
async fn to_the_end(of: &str, ask: impl AsyncFn() -> Answer) -> Answer {
    eventually(&format!("the end of {of}"), async || {
        let answer = ask().await;
        let may_be_asked_again =
            answer.code() == "AUTHORITY_UNAVAILABLE" || answer.body["retryable"] == json!(true);
        if may_be_asked_again {
            assert_ne!(answer.header("retry-after"), "", "{}", answer.text);
        }
        (!may_be_asked_again).then_some(answer)
    })
    .await
}
