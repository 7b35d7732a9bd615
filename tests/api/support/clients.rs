//! Callers, one a role. Each knows its key and its paths; what comes back is not judged here.

use std::sync::LazyLock;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::documents::Registration;

use super::answer::Answer;

static HTTP: LazyLock<reqwest::Client> =
    LazyLock::new(|| reqwest::Client::builder().no_proxy().build().unwrap());

pub(crate) const INVOICES: &str = "/v1/tax-payers/invoices";
pub(crate) const FULL: &str = "/v1/tax-payers/invoices/full";
pub(crate) const UPDATE: &str = "/v1/tax-payers/invoices/update";
pub(crate) const BULK: &str = "/v1/tax-payers/invoices/bulk";
pub(crate) const BATCHES: &str = "/v1/tax-payers/invoices/batches";
pub(crate) const UPDATE_STATUS: &str = "/v1/tax-payers/invoices/update-status";
pub(crate) const UPDATE_PAYMENT: &str = "/v1/tax-payers/invoices/update-payment-status";
pub(crate) const INBOX: &str = "/v1/tax-payers/supplier-invoices";
pub(crate) const GET_SUPPLIER_INVOICE: &str = "/v1/tax-payers/invoices/get-supplier-invoice";
pub(crate) const ACKNOWLEDGE: &str = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";
pub(crate) const EVENTS: &str = "/v1/tax-payers/events";
pub(crate) const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";
pub(crate) const SUBMIT: &str = "/v1/app/invoices/submit";
pub(crate) const VALIDATE: &str = "/v1/app/invoices/validate";
pub(crate) const REPORT: &str = "/v1/app/invoices/report";
pub(crate) const TRANSMIT: &str = "/v1/app/invoices/transmit";

/// Any caller: the address, and a key where there is one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    root: String,
    pub(crate) key: Option<String>,
}

impl Caller {
    /// A request to be sent with `Answer::to`, for what the shorter ways do not offer.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = HTTP.request(method, format!("{}{path}", self.root));
        match &self.key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str) -> Answer {
        Answer::to(self.request(method, path)).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(method, path).json(body)).await
    }

    /// A write with an `Idempotency-Key`.
    pub(crate) async fn send_keyed(&self, key: &str, method: &str, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(method, path).header("idempotency-key", key).json(body)).await
    }

    /// A body as it is, JSON or not.
    pub(crate) async fn send_text(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.request(method, path).header("content-type", "application/json").body(body);
        Answer::to(request).await
    }
}

/// Declares a role: a caller with a kind of key.
macro_rules! role {
    ($(#[$doc:meta])* $role:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $role(pub(crate) Caller);

        impl $role {
            pub(crate) fn new(root: String, key: &str) -> Self {
                Self(Caller { root, key: Some(key.to_owned()) })
            }
        }

        impl std::ops::Deref for $role {
            type Target = Caller;

            fn deref(&self) -> &Caller {
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
pub(crate) struct AppClient(Caller);

impl std::ops::Deref for AppClient {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

/// Without a key.
#[derive(Debug, Clone)]
pub(crate) struct Anonymous(Caller);

impl Anonymous {
    pub(crate) fn new(root: String) -> Self {
        Self(Caller { root, key: None })
    }

    pub(crate) fn with_key(&self, key: &str) -> Caller {
        Caller { root: self.0.root.clone(), key: Some(key.to_owned()) }
    }
}

impl std::ops::Deref for Anonymous {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl Integrator {
    pub(crate) async fn create_taxpayer(&self, body: &Value) -> Answer {
        self.send("POST", TAXPAYERS, body).await
    }

    pub(crate) async fn change_profile(&self, id: i64, body: &Value) -> Answer {
        self.send("PATCH", &format!("{TAXPAYERS}/{id}/profile"), body).await
    }

    pub(crate) async fn rotate_api_key(&self, id: i64) -> Answer {
        self.call("POST", &format!("{TAXPAYERS}/{id}/api-key/rotate")).await
    }

    pub(crate) async fn set_webhook(&self, id: i64, url: &str, events: &[&str]) -> Answer {
        let body = json!({ "webhook_url": url, "enabled_events": events });
        self.send("PUT", &webhook(id), &body).await
    }

    pub(crate) async fn webhook(&self, id: i64) -> Answer {
        self.get(&webhook(id)).await
    }

    /// The new signing secret.
    pub(crate) async fn rotate_secret(&self, id: i64) -> String {
        let answer = self.call("POST", &format!("{}/secret", webhook(id))).await.expect_status(200);
        answer.data()["secret"].as_str().unwrap().to_owned()
    }

    /// The public key of the new pair.
    pub(crate) async fn rotate_key_pair(&self, id: i64) -> String {
        let path = format!("{}/secret", webhook(id));
        let answer = self.send("POST", &path, &json!({ "type": "ed25519" })).await.expect_status(200);
        answer.data()["public_key"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn test_webhook(&self, id: i64) -> Answer {
        self.call("POST", &format!("{}/test", webhook(id))).await
    }

    pub(crate) async fn enable_webhook(&self, id: i64, replay: &str) -> Answer {
        self.send("POST", &format!("{}/enable", webhook(id)), &json!({ "replay": replay })).await
    }

    pub(crate) async fn deliveries(&self, id: i64, query: &str) -> Answer {
        self.get(&format!("{}/deliveries{query}", webhook(id))).await
    }

    /// Delivers a part of the log once more, from a place on.
    pub(crate) async fn replay(&self, id: i64, since: Value, only: &str) -> Answer {
        let body = json!({ "since": since, "only": only });
        self.send("POST", &format!("{}/replay", webhook(id)), &body).await
    }

    pub(crate) async fn replays(&self, id: i64, rest: &str) -> Answer {
        self.get(&format!("{}/replays{rest}", webhook(id))).await
    }

    pub(crate) async fn cancel_replay(&self, id: i64, replay: &str) -> Answer {
        self.call("POST", &format!("{}/replays/{replay}/cancel", webhook(id))).await
    }

    pub(crate) fn app(&self) -> AppClient {
        AppClient(self.0.clone())
    }
}

/// Where a payment status is relayed.
pub(crate) fn relay(irn: &str) -> String {
    format!("/v1/app/invoices/{irn}/update-payment-status")
}

impl Operator {
    pub(crate) async fn runs(&self, query: &str) -> Answer {
        self.get(&format!("/ops/pipeline/runs{query}")).await
    }

    /// Pauses, resumes, retries or cancels a run.
    pub(crate) async fn move_run(&self, id: &str, to: &str) -> Answer {
        let body = json!({ "reason": format!("to {to} it") });
        self.send("POST", &format!("/ops/pipeline/runs/{id}/{to}"), &body).await
    }

    /// The latest run of a taxpayer, with its steps.
    pub(crate) async fn run_of(&self, taxpayer: &Taxpayer) -> Value {
        let listed = self.runs(&format!("?taxpayer_id={}", taxpayer.id)).await.expect_status(200);
        let id = listed.data()["data"][0]["id"].as_str().unwrap().to_owned();
        self.runs(&format!("/{id}")).await.expect_status(200).data().clone()
    }

    pub(crate) async fn dead_letters(&self, query: &str) -> Answer {
        self.get(&format!("/ops/webhooks/dead-letters{query}")).await
    }

    /// Has a day of a taxpayer compared with the authority's ledger.
    pub(crate) async fn reconcile(&self, taxpayer: i64, day: &str) -> Answer {
        let body = json!({ "taxpayer_id": taxpayer, "day": day });
        self.send("POST", "/ops/reconciliations", &body).await
    }

    pub(crate) async fn reconciliations(&self, query: &str) -> Answer {
        self.get(&format!("/ops/reconciliations{query}")).await
    }

    pub(crate) async fn audit(&self, query: &str) -> Answer {
        self.get(&format!("/ops/audit{query}")).await
    }
}

pub(crate) fn webhook(id: i64) -> String {
    format!("{TAXPAYERS}/{id}/webhook")
}

/// Creates, reads, edits and tracks its own invoices.
#[derive(Debug, Clone)]
pub(crate) struct Taxpayer {
    caller: Caller,
    pub(crate) id: i64,
    pub(crate) registration: Registration,
}

impl AsRef<Registration> for Taxpayer {
    fn as_ref(&self) -> &Registration {
        &self.registration
    }
}

impl std::ops::Deref for Taxpayer {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Taxpayer {
    pub(crate) fn new(root: String, key: &str, id: i64, body: &Value) -> Self {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self {
            caller: Caller { root, key: Some(key.to_owned()) },
            id,
            registration: Registration {
                service_id: text("authority_service_id"),
                business_id: text("authority_business_id"),
                tin: text("tin_no"),
            },
        }
    }

    pub(crate) fn app(&self) -> AppClient {
        AppClient(self.caller.clone())
    }

    pub(crate) async fn create_invoice(&self, body: &Value) -> Answer {
        self.send("POST", INVOICES, body).await
    }

    pub(crate) async fn create_full(&self, body: &Value) -> Answer {
        self.send("POST", FULL, body).await
    }

    /// A full invoice that was created just now.
    pub(crate) async fn full(&self, body: &Value) -> Value {
        self.create_full(body).await.expect_status(201).data().clone()
    }

    pub(crate) async fn update(&self, body: &Value) -> Answer {
        self.send("PUT", UPDATE, body).await
    }

    /// An invoice with its lines and its ledger.
    pub(crate) async fn whole(&self, invoice: &Value) -> Value {
        let path = format!("{INVOICES}/{}?include=lines,ledger", invoice["id"]);
        self.get(&path).await.expect_status(200).data().clone()
    }

    /// An invoice that was created just now.
    pub(crate) async fn invoice(&self, body: &Value) -> Value {
        self.create_invoice(body).await.expect_status(201).data().clone()
    }

    pub(crate) async fn create_batch(&self, invoices: &[Value]) -> Answer {
        self.send("POST", BULK, &json!({ "invoices": invoices })).await
    }

    /// What became of the batch that an answer speaks of.
    pub(crate) async fn outcome(&self, created: &Answer) -> Value {
        let batch_no = created.data()["batch_no"].as_str().unwrap();
        self.get(&format!("{BATCHES}/{batch_no}")).await.expect_status(200).data().clone()
    }

    pub(crate) async fn timeline(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}/timeline")).await
    }

    pub(crate) async fn get_invoice(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}")).await
    }

    /// The invoice as it reads now.
    pub(crate) async fn reread(&self, invoice: &Value) -> Value {
        self.get_invoice(&invoice["id"]).await.expect_status(200).data().clone()
    }

    pub(crate) async fn list_invoices(&self, query: &str) -> Answer {
        self.get(&format!("{INVOICES}{query}")).await
    }

    pub(crate) async fn set_status(&self, invoice: &Value, status: &str) -> Answer {
        let body = json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "as agreed",
        });
        self.send("PATCH", UPDATE_STATUS, &body).await
    }

    pub(crate) async fn pay(&self, body: &Value) -> Answer {
        self.send("PATCH", UPDATE_PAYMENT, body).await
    }

    pub(crate) async fn inbox(&self, query: &str) -> Answer {
        self.get(&format!("{INBOX}{query}")).await
    }

    /// The lines of the inbox, newest first.
    pub(crate) async fn inbox_lines(&self) -> Vec<Value> {
        let answer = self.inbox("").await.expect_status(200);
        answer.data()["data"].as_array().unwrap().clone()
    }

    pub(crate) async fn supplier_invoice(&self, irn: &str) -> Answer {
        self.send("POST", GET_SUPPLIER_INVOICE, &json!({ "supplier_irn": irn })).await
    }

    pub(crate) async fn acknowledge(&self, irn: &str) -> Answer {
        self.send("POST", ACKNOWLEDGE, &json!({ "supplier_irn": irn })).await
    }

    /// How many events of a name the log has.
    pub(crate) async fn count_of(&self, name: &str) -> usize {
        self.event_names().await.iter().filter(|event| *event == name).count()
    }

    /// The events of this taxpayer, from the first on.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let answer = self.get(&format!("{EVENTS}?limit=1000")).await.expect_status(200);
        answer.data()["events"].as_array().unwrap().clone()
    }

    /// The events that speak of an invoice.
    pub(crate) async fn invoice_events(&self) -> Vec<Value> {
        self.events().await.into_iter().filter(|event| event["irn"].is_string()).collect()
    }

    /// Their names, in order.
    pub(crate) async fn invoice_event_names(&self) -> Vec<String> {
        let events = self.invoice_events().await;
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The names of the events, in order.
    pub(crate) async fn event_names(&self) -> Vec<String> {
        self.events().await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

impl AppClient {
    pub(crate) async fn submit(&self, body: &Value) -> Answer {
        self.send("POST", SUBMIT, body).await
    }

    pub(crate) async fn submit_async(&self, body: &Value) -> Answer {
        let request = self.request("POST", SUBMIT).header("prefer", "respond-async");
        Answer::to(request.json(body)).await
    }

    pub(crate) async fn transmit(&self, irn: &str) -> Answer {
        self.send("POST", TRANSMIT, &json!({ "irn": irn })).await
    }

    pub(crate) async fn confirm_receipt(&self, irn: &str) -> Answer {
        self.call("PATCH", &format!("{TRANSMIT}/{irn}/confirm-receipt")).await
    }

    pub(crate) async fn confirm(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/confirm")).await
    }

    pub(crate) async fn validate(&self, body: &Value) -> Answer {
        self.send("POST", VALIDATE, body).await
    }

    pub(crate) async fn report(&self, body: &Value) -> Answer {
        self.send("POST", REPORT, body).await
    }

    /// Relays a payment status.
    pub(crate) async fn pay(&self, irn: &str, status: &str) -> Answer {
        self.send("PATCH", &relay(irn), &json!({ "payment_status": status })).await
    }

    pub(crate) async fn download(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/download")).await
    }

    /// The run of an operation that is not the one shown unasked.
    pub(crate) async fn run_of(&self, irn: &str, operation: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run?operation={operation}")).await
    }

    pub(crate) async fn run(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run")).await
    }
}
