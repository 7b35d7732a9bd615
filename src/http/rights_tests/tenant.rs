//! The other tenant: a taxpayer of another integrator, with one object of each kind.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::TAXPAYERS;
use super::calls::{CallResponse, TestCall, get, post, send};
use crate::http::forms::testing::{standard_invoice, submission, with_member};
use crate::http::testing::OTHER_INTEGRATOR_KEY;

/// A text that all data of the other tenant contains, and that no other data contains.
pub(super) const MARK: &str = "foreign-mark";
const INVOICES: &str = "/v1/tax-payers/invoices";
const TIN: &str = "99887766-0001";
const BUSINESS_ID: &str = "99999999-9999-4999-8999-999999999999";

/// The other tenant: its ids, its key and its data.
pub(super) struct OtherTenant {
    taxpayer: i64,
    invoice: i64,
    taxpayer_key: String,
    pub(super) irn: String,
    /// The parameters of paths, such as `{irn}`, each with the other tenant's value.
    path_values: Vec<(&'static str, String)>,
    /// A body with the fields of many paths. Each field names an object of the other tenant.
    pub(super) body: Value,
}

/// Onboards a taxpayer of another integrator, with a profile and a webhook. Returns the taxpayer's id and its key.
async fn onboard_foreign(ask: &impl AsyncFn(TestCall) -> CallResponse) -> (i64, String) {
    let integrator = OTHER_INTEGRATOR_KEY;
    let onboarding = json!({
        "name": "foreign-mark Ltd", "email": "books@foreign-mark.example", "tin_no": TIN,
        "phone": "+2348010000000", "nature_of_business": "Milling", "authority_service_id": "F0E1D2C3",
        "authority_business_id": BUSINESS_ID, "address": "9 foreign-mark Road",
        "contact_person": { "first_name": "Foreign", "last_name": "Person", "phone": "+2348020000000",
            "email": "person@foreign-mark.example", "password": "correct horse battery" },
    });
    let taxpayer = post(ask, TAXPAYERS, integrator, onboarding).await["id"]
        .as_i64()
        .unwrap();
    let own_path = |end: &str| format!("{TAXPAYERS}/{taxpayer}/{end}");
    let address = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    ask(send(
        Method::PATCH,
        &own_path("profile"),
        integrator,
        address,
    ))
    .await
    .data();
    let rotated = post(ask, &own_path("api-key/rotate"), integrator, json!({})).await;
    let taxpayer_key = rotated["api_key"].as_str().unwrap().to_owned();
    let webhook = json!({ "webhook_url": "https://hook.foreign-mark.example/", "enabled_events": ["invoice.created"] });
    ask(send(Method::PUT, &own_path("webhook"), integrator, webhook))
        .await
        .data();
    (taxpayer, taxpayer_key)
}

/// Returns a submission of the other tenant's invoice.
fn foreign_submission(irn: &str) -> Value {
    let members = [
        ("/irn", irn),
        ("/accounting_supplier_party/tin", TIN),
        ("/business_id", BUSINESS_ID),
    ];
    members
        .into_iter()
        .fold(submission(), |body, (pointer, value)| {
            with_member(&body, pointer, Some(json!(value)))
        })
}

/// Returns the text of an id, which is a number or a text.
fn id_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl OtherTenant {
    /// Creates a taxpayer of another integrator, and one object of each kind for that taxpayer.
    pub(super) async fn create(ask: &impl AsyncFn(TestCall) -> CallResponse) -> Self {
        let integrator = OTHER_INTEGRATOR_KEY;
        let (taxpayer, taxpayer_key) = onboard_foreign(ask).await;
        let own_path = |end: &str| format!("{TAXPAYERS}/{taxpayer}/{end}");
        let invoice = with_member(
            &standard_invoice(),
            "/customer/name",
            Some(json!("foreign-mark customer")),
        );
        let invoice = with_member(&invoice, "/customer/tin", Some(json!("11223344-0001")));
        let created_invoice = post(ask, INVOICES, &taxpayer_key, invoice.clone()).await;
        let irn = created_invoice["irn"].as_str().unwrap().to_owned();
        let second = with_member(&invoice, "/invoice_no", Some(json!("INV002")));
        let bulk = json!({ "invoices": [second] });
        let batch = post(ask, &format!("{INVOICES}/bulk"), &taxpayer_key, bulk).await;
        let third = with_member(&invoice, "/invoice_no", Some(json!("INV003")));
        let import = post(ask, &format!("{INVOICES}/import"), &taxpayer_key, third).await;
        let mut body = foreign_submission(&irn);
        let submit = "/v1/app/invoices/submit";
        // The authority is unreachable, so the run stays open.
        let run = ask(send(Method::POST, submit, &taxpayer_key, body.clone())).await;
        assert_eq!(run.status, 503, "{}", run.text);
        let replay_all = json!({ "since": 1, "only": "all" });
        let replay = post(ask, &own_path("webhook/replay"), integrator, replay_all).await;
        let deliveries = ask(get(&own_path("webhook/deliveries"), integrator))
            .await
            .data();
        let second_hook = json!({ "url": "https://hook.foreign-mark.example/", "enabled_events": ["invoice.created"] });
        let endpoint = post(ask, &own_path("webhook/endpoints"), integrator, second_hook).await;
        let taxpayer_view = ask(get(&format!("{TAXPAYERS}/{taxpayer}"), integrator))
            .await
            .data();
        let path_values = vec![
            ("{irn}", irn.clone()),
            ("{batch_no}", id_text(&batch["batch_no"])),
            ("{import_no}", id_text(&import["import_no"])),
            ("{correction_no}", "C20260115-0000000000000000".to_owned()),
            ("{contact_id}", id_text(&taxpayer_view["users"][0]["id"])),
            ("{delivery_id}", id_text(&deliveries["data"][0]["id"])),
            ("{replay_id}", id_text(&replay["id"])),
            ("{endpoint_id}", id_text(&endpoint["id"])),
            ("{reference}", uuid::Uuid::nil().to_string()),
            ("{list}", "countries".to_owned()),
            ("{operation}", "sign".to_owned()),
            ("{file:.*}", "index.html".to_owned()),
            ("{token}", "not-the-token".to_owned()),
        ];
        let fields = json!({
            "unique_no": irn, "unique_no_type": "IRN", "status": "approved", "payment_status": "PAID",
            "remark": "not mine", "taxpayer_id": taxpayer, "since": 1, "x": created_invoice["id"],
        });
        for (name, value) in fields.as_object().unwrap() {
            body[name.as_str()] = value.clone();
        }
        Self {
            taxpayer,
            invoice: created_invoice["id"].as_i64().unwrap(),
            taxpayer_key,
            irn,
            path_values,
            body,
        }
    }

    /// Replaces the parameters of a path by the other tenant's values.
    pub(super) fn path(&self, pattern: &str) -> String {
        let id = if pattern.starts_with(INVOICES) {
            self.invoice
        } else {
            self.taxpayer
        };
        let path = self
            .path_values
            .iter()
            .fold(pattern.to_owned(), |path, (name, value)| {
                path.replace(name, value)
            });
        let path = path
            .replace("{id}", &id.to_string())
            .replace("{invoice_id}", &self.invoice.to_string())
            .replace("{supplier_irn}", &self.irn);
        assert!(
            !path.contains('{'),
            "no value is known for a parameter of {pattern}: add one"
        );
        path
    }

    /// Returns true if the path contains the id of an object. Only the owner may see such an object.
    pub(super) fn has_object_id(pattern: &str) -> bool {
        [
            "{id}",
            "{irn}",
            "{batch_no}",
            "{import_no}",
            "{correction_no}",
            "{contact_id}",
            "{delivery_id}",
            "{replay_id}",
            "{endpoint_id}",
            "{invoice_id}",
            "{supplier_irn}",
        ]
        .iter()
        .any(|name| pattern.contains(name))
    }

    /// Checks that the other tenant can read its own objects. Otherwise a missing object would look like a hidden one.
    pub(super) async fn check_own_objects_visible(
        &self,
        ask: &impl AsyncFn(TestCall) -> CallResponse,
    ) {
        for (path, key) in [
            (
                format!("{INVOICES}/{}", self.invoice),
                self.taxpayer_key.as_str(),
            ),
            (
                format!("{TAXPAYERS}/{}", self.taxpayer),
                OTHER_INTEGRATOR_KEY,
            ),
            (
                format!("{TAXPAYERS}/{}/webhook", self.taxpayer),
                OTHER_INTEGRATOR_KEY,
            ),
        ] {
            let response = ask(get(&path, key)).await;
            assert!(
                response.status == 200 && response.is_marked(),
                "{path}: {}",
                response.text
            );
        }
        for pattern in [
            "/v1/tax-payers/invoices/batches/{batch_no}",
            "/v1/tax-payers/invoices/imports/{import_no}",
            "/v1/tax-payers/invoices/{id}/timeline",
            "/v1/app/invoices/{irn}/run",
        ] {
            let response = ask(get(&self.path(pattern), &self.taxpayer_key)).await;
            assert_eq!(response.status, 200, "{pattern}: {}", response.text);
        }
        let replay = self.path("/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}");
        assert_eq!(ask(get(&replay, OTHER_INTEGRATOR_KEY)).await.status, 200);
    }

    /// Returns the other tenant's event log, which contains an event for every change.
    pub(super) async fn events(&self, ask: &impl AsyncFn(TestCall) -> CallResponse) -> Value {
        ask(get("/v1/tax-payers/events", &self.taxpayer_key))
            .await
            .data()
    }
}
