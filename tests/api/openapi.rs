//! GET /openapi.json: the document is true. Every operation of it is called, in the order of a story of the demo account,
//! with the very examples that the document and the pages of the reference show.

use std::collections::{BTreeMap, BTreeSet};

use einvoice::internals::EventKind;
use reqwest::RequestBuilder;
use reqwest::redirect::Policy;
use sandbox::{FaultKind, FaultOrder, InboundInvoice, Operation as Upstream};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents::{Registration, number, taxpayer_registered};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::answer_examples::AnswerExamples;
use crate::docs::PastedCommand;
use crate::support::documented::check_value;
use crate::support::world::World;

/// Each operation by its id, and what it answers where the story stands.
const STORY: &[(&str, u16)] = &[
    ("live", 200),
    ("ready", 200),
    ("openapi", 200),
    ("invoice_categories", 200),
    ("create_taxpayer", 201),
    ("list_taxpayers", 200),
    ("get_taxpayer", 200),
    ("invite_contact", 200),
    ("get_integration_setup", 200),
    ("get_profile", 200),
    ("update_profile", 200),
    ("rotate_api_key", 200),
    ("update_webhook", 200),
    ("get_webhook", 200),
    ("rotate_webhook_secret", 200),
    ("add_webhook_endpoint", 201),
    ("list_webhook_endpoints", 200),
    ("get_webhook_endpoint", 200),
    ("change_webhook_endpoint", 200),
    ("rotate_webhook_endpoint_secret", 200),
    // Nobody answers at the address of the example.
    ("test_webhook_endpoint", 502),
    ("enable_webhook_endpoint", 200),
    ("replay_webhook_endpoint", 200),
    ("get_webhook_endpoint_replay", 200),
    ("list_webhook_endpoint_deliveries", 200),
    ("replay_selected_endpoint_deliveries", 202),
    ("remove_webhook_endpoint", 200),
    ("set_integration", 200),
    ("get_integration", 200),
    ("list_all_taxpayers", 200),
    ("verify_taxpayer", 200),
    ("list_top_taxpayers", 200),
    ("pause_taxpayer", 200),
    ("resume_taxpayer", 200),
    ("list_contacts", 200),
    ("invite_taxpayer_contact", 200),
    // The only owner stays.
    ("set_contact_role", 409),
    ("disable_contact", 409),
    ("enable_contact", 200),
    ("remove_contact", 409),
    // Nobody answers at the address of the example.
    ("test_webhook", 502),
    ("enums", 200),
    ("resources", 200),
    ("create_invoice", 201),
    ("create_invoice", 200),
    ("create_full_invoice", 201),
    ("create_full_invoice", 200),
    ("create_batch", 201),
    ("get_batch", 200),
    // It is a draft, and nothing was corrected.
    ("correct_invoice", 409),
    ("get_correction", 404),
    ("set_import_profile", 200),
    ("get_import_profile", 200),
    ("import_invoices", 201),
    ("get_import", 200),
    ("get_import_errors", 200),
    // A small file is imported at once.
    ("cancel_import", 409),
    ("list_invoices", 200),
    ("get_summary", 200),
    ("get_by_unique_no", 200),
    ("get_invoice", 200),
    ("update_invoice", 200),
    ("update_status", 200),
    ("update_payment_status", 200),
    ("take_payment_back", 200),
    ("validate", 200),
    ("submit", 200),
    ("transmit", 200),
    ("confirm_receipt", 200),
    ("notifications", 200),
    ("report", 200),
    ("relay_payment_status", 200),
    ("confirm", 200),
    ("download", 200),
    ("get_run", 200),
    ("get_invoice_as_of", 200),
    ("get_timeline", 200),
    ("get_invoice_pdf", 200),
    ("get_invoice_ubl", 200),
    ("get_invoice_json", 200),
    ("get_invoice_qr_svg", 200),
    ("get_invoice_qr_png", 200),
    ("list_activity", 200),
    ("list_requests", 200),
    ("list_events", 200),
    ("list_webhook_events", 200),
    ("list_supplier_invoices", 200),
    ("get_supplier_invoice", 200),
    ("get_supplier_invoice_pdf", 200),
    ("get_supplier_invoice_json", 200),
    ("acknowledge_supplier_invoice", 200),
    ("get_taxpayers_pdf", 200),
    ("get_taxpayers_ubl", 200),
    ("get_taxpayers_json", 200),
    ("get_taxpayers_qr_svg", 200),
    ("get_taxpayers_qr_png", 200),
    ("list_deliveries", 200),
    ("list_delivery_attempts", 200),
    ("share_delivery", 201),
    ("list_own_dead_letters", 200),
    ("replay_own_dead_letter", 200),
    ("replay_delivery", 200),
    ("replay_webhook", 200),
    ("get_replay", 200),
    ("list_replays", 200),
    ("find_replay", 200),
    // It has come to its end.
    ("cancel_replay", 409),
    ("replay_selected_deliveries", 202),
    ("enable_webhook", 200),
    ("supervision", 200),
    ("list_runs", 200),
    ("overview", 200),
    ("list_incidents", 200),
    ("move_runs", 200),
    ("list_endpoints", 200),
    ("get_operated_run", 200),
    ("pause_run", 200),
    ("resume_run", 200),
    ("pause_run", 200),
    ("retry_run", 200),
    ("cancel_run", 200),
    ("list_dead_letters", 200),
    ("replay_dead_letter", 200),
    ("replay_dead_letters", 200),
    ("list_quarantine", 200),
    // No command has panicked.
    ("replay_command", 404),
    ("drop_quarantined", 404),
    ("undo_batch", 202),
    ("create_reconciliation", 200),
    ("list_reconciliations", 200),
    ("get_reconciliation", 200),
    ("decide_findings", 200),
    ("reopen_findings", 200),
    ("list_replicas", 200),
    ("breakers", 200),
    ("trip_breaker", 200),
    ("reset_breaker", 200),
    ("search", 200),
    // Nothing after it commands the actor of a taxpayer.
    ("order_panic", 200),
    ("list_outages", 200),
    ("list_audit", 200),
    ("list_own_audit", 200),
    ("list_all_requests", 200),
    ("list_integrators", 200),
    ("rotate_integrator_key", 200),
    ("revoke_integrator_keys", 200),
    ("disable_integrator", 200),
    ("enable_integrator", 200),
    ("invite_integrator", 200),
    ("list_operators", 200),
    // The only admin stays.
    ("disable_operator", 409),
    ("enable_operator", 200),
    // Nobody makes a link for itself.
    ("invite_operator", 409),
    ("set_operator_role", 409),
    ("remove_operator", 409),
    ("rotate_operator_key", 200),
    // The last: it is the operator of the story.
    ("revoke_operator_keys", 200),
];

/// Operations of `/v1` that change nothing although they are POST; a test of a webhook only calls its receiver.
const READS: &[&str] = &[
    "confirm",
    "download",
    "get_by_unique_no",
    "get_supplier_invoice",
    "test_webhook",
    "test_webhook_endpoint",
    "validate",
];

/// Operations whose answer has a secret, which is not stored.
const SHOW_SECRETS: &[&str] = &[
    "add_webhook_endpoint",
    "invite_contact",
    "rotate_api_key",
    "rotate_webhook_endpoint_secret",
    "rotate_webhook_secret",
    "share_delivery",
];

/// Told in a format of its own.
const NO_JSON: [&str; 1] = ["metrics"];

#[each_database(&[("WEBHOOKS__RETRY_SCHEDULE_S", "[0]"), ("PIPELINE__WAIT_S", "5")])]
async fn every_operation_answers_as_the_document_says_with_the_examples_it_shows(world: &World) {
    let document = world
        .anonymous()
        .get("/openapi.json")
        .await
        .expect_status(200)
        .body;
    let mut walk = Walk::through(world, &document).await;
    let mut answers = AnswerExamples::new(world.root());
    for (name, status) in STORY {
        walk.prepare(name).await;
        let answer = walk.call(name).await;
        assert_eq!(answer.status, *status, "{name}: {}", answer.body);
        walk.note(name, &answer);
        answers.add(name, &answer);
    }
    walk.has_called_everything();
    answers.are_those_of(&document);
    walk.events_are_as_the_catalogue_says().await;
}

/// The stories send what a developer pastes.
#[on_sqlite]
async fn the_command_on_the_page_of_each_operation_is_the_call_of_its_example(world: &World) {
    let document = world.anonymous().get("/openapi.json").await;
    for (name, operation) in operations(&document.expect_status(200).body) {
        operation.expect_call(&PastedCommand::of_page(world, &name).await);
    }
}

/// On one database: each operation is called on both above, and `idempotency` repeats requests on both.
#[on_sqlite(&[("WEBHOOKS__RETRY_SCHEDULE_S", "[0]"), ("PIPELINE__WAIT_S", "5")])]
async fn every_write_that_is_repeated_with_its_key_is_carried_out_once(world: &World) {
    let document = world.anonymous().get("/openapi.json").await;
    let mut walk = Walk::through(world, &document.expect_status(200).body).await;
    walk.repeats_writes = true;
    for (name, status) in STORY {
        walk.prepare(name).await;
        let answer = walk.call(name).await;
        assert_eq!(answer.status, *status, "{name}: {}", answer.body);
        walk.note(name, &answer);
    }
}

/// One operation of the document.
struct Operation {
    method: String,
    path: String,
    example: Option<Value>,
    /// True if it takes an `Idempotency-Key`.
    is_keyed: bool,
    /// Each status with its description: of a failure, its codes.
    statuses: BTreeMap<String, String>,
    schemes: Vec<String>,
}

struct Walk<'w> {
    world: &'w World,
    operations: BTreeMap<String, Operation>,
    keys: BTreeMap<&'static str, String>,
    /// What stands in the place of a path's parameter.
    places: BTreeMap<&'static str, String>,
    /// True if each write is sent twice, with one `Idempotency-Key`.
    repeats_writes: bool,
}

impl Operation {
    /// Returns true if it is an operation of `/v1` that changes something.
    fn is_write(&self, name: &str) -> bool {
        let is_v1 = self.path.starts_with("/v1/");
        let may_change = !["GET", "HEAD"].contains(&self.method.as_str());
        let is_read = READS.iter().any(|read| {
            let rest = name.strip_prefix(read);
            rest.is_some_and(|method| method.is_empty() || method.starts_with("_by_"))
        });
        is_v1 && may_change && !is_read
    }

    /// Expects that the command on the operation's page makes the call of a story.
    #[track_caller]
    fn expect_call(&self, command: &PastedCommand) {
        assert_eq!(command.method, self.method, "{}", self.path);
        let pairs = self.path.split('/').zip(command.path.split('/'));
        for (step, pasted) in pairs {
            assert!(
                step == pasted || step.starts_with('{') && !pasted.is_empty(),
                "{} is pasted as {}",
                self.path,
                command.path
            );
        }
        let variable = self.schemes.first().map(|scheme| match scheme.as_str() {
            "integrator_key" => "SIK",
            "operator_key" => "OPK",
            _ => "KEY",
        });
        assert_eq!(command.key.as_deref(), variable, "{}", self.path);
        assert_eq!(command.body, self.example, "{}", self.path);
    }
}

impl<'w> Walk<'w> {
    async fn through(world: &'w World, document: &Value) -> Self {
        let keys = [
            ("integrator_key", world.integrator().key().to_owned()),
            ("operator_key", world.new_operator().await.key().to_owned()),
        ];
        let token = world.notices_path().rsplit('/').next().unwrap().to_owned();
        let irn = "INV0001-94CD90AA-20260115".to_owned();
        let taxpayer = create_demo_account(world).await;
        let places = [
            ("id", taxpayer.clone()),
            ("taxpayer", taxpayer),
            ("operation", "sign".to_owned()),
            ("token", token),
            ("irn", irn),
            ("supplier_irn", "INV9001-5A3F00C1-20260115".to_owned()),
            ("list", "currencies".to_owned()),
            ("reference", uuid::Uuid::nil().to_string()),
            ("correction_no", "C20260115-0000000000000000".to_owned()),
        ];
        Self {
            world,
            operations: operations(document),
            keys: keys.into(),
            places: places.into(),
            repeats_writes: false,
        }
    }

    /// What the authority does meanwhile.
    async fn prepare(&self, name: &str) {
        match name {
            "list_supplier_invoices" => self.receive_a_suppliers_invoice().await,
            "list_runs" => self.hold_up_a_submission().await,
            "list_own_dead_letters" | "replay_delivery" => {
                let dead = async || {
                    let found = self.call("list_deliveries").await;
                    (found.data()["data"][0]["state"] == "dead").then_some(())
                };
                eventually("a delivery that was given up", dead).await;
            }
            "decide_findings" => self.find_a_difference().await,
            "cancel_replay" => {
                let ended = async || {
                    let found = self.call("find_replay").await;
                    (found.data()["state"] == "done").then_some(())
                };
                eventually("the end of a replay", ended).await;
            }
            "list_dead_letters" => {
                let some = async || {
                    let found = self.call("list_dead_letters").await;
                    found.data()["data"][0]["id"].as_str().map(drop)
                };
                eventually("a dead letter", some).await;
            }
            _ => {}
        }
    }

    async fn receive_a_suppliers_invoice(&self) {
        let planted = InboundInvoice {
            tin: Registration::demo().tin,
            irn: Some("INV9001-5A3F00C1-20260115".to_owned()),
            notify: Some(true),
            ..InboundInvoice::default()
        };
        self.world.authority.plant_invoice(&planted).unwrap();
        let arrived = async || {
            let inbox = self.call("list_supplier_invoices").await;
            inbox.data()["data"][0]["supplier_irn"].as_str().map(drop)
        };
        eventually("the supplier's invoice", arrived).await;
    }

    /// The difference that operators decide.
    async fn find_a_difference(&self) {
        let id = &self.places["id"];
        let add = format!(
            "INSERT INTO reconciliation_findings (taxpayer_id, reconciliation_id, number, kind, irn, remote, action, detail) \
             SELECT taxpayer_id, id, 1, 'missing_locally', 'INV0900-94CD90AA-20260115', 'signed', 'listed', \
             'It was signed by another way than this service: ask the taxpayer.' FROM reconciliations WHERE id = '{id}'"
        );
        assert_eq!(self.world.execute(&add).await, 1);
        let count = format!("UPDATE reconciliations SET listed = 1 WHERE id = '{id}'");
        assert_eq!(self.world.execute(&count).await, 1);
    }

    /// The run that operators move.
    async fn hold_up_a_submission(&self) {
        let fault = FaultOrder::new(FaultKind::ServerError)
            .on(Upstream::IrnValidate)
            .times(1_000_000);
        self.world.authority.add_fault(fault).unwrap();
        let mut body = self.operations["submit"].example.clone().unwrap();
        body["invoice_reference"] = json!("INV0004");
        body["irn"] = json!("INV0004-94CD90AA-20260115");
        let caller = self.caller("submit");
        let request = caller
            .request("POST", "/v1/app/invoices/submit")
            .header("prefer", "respond-async");
        Answer::to(request.json(&body)).await.expect_status(202);
    }

    fn caller(&self, name: &str) -> Client {
        let schemes = &self.operations[name].schemes;
        let key = schemes
            .iter()
            .find_map(|scheme| self.keys.get(scheme.as_str()));
        // An empty key is none.
        self.world
            .anonymous()
            .with_key(key.map_or("", String::as_str))
    }

    async fn call(&self, name: &str) -> Answer {
        self.send(name, self.operations[name].example.as_ref())
            .await
    }

    async fn send(&self, name: &str, body: Option<&Value>) -> Answer {
        let operation = &self.operations[name];
        let mut path = operation.path.clone();
        for (parameter, value) in &self.places {
            path = path.replace(&format!("{{{parameter}}}"), value);
        }
        assert!(
            !path.contains('{'),
            "nothing stands for a parameter of {path}"
        );
        let caller = self.caller(name);
        let request = || {
            let request = caller.request(&operation.method, &path);
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        let answer = if self.repeats_writes && operation.is_keyed {
            answer_of_repeated(name, request).await
        } else {
            Answer::to(request()).await
        };
        let told = operation.statuses.get(&answer.status.to_string());
        let told = told
            .unwrap_or_else(|| panic!("{name} may not answer {}: {}", answer.status, answer.body));
        let is_told = answer.status < 400 || told.split(", ").any(|code| code == answer.code());
        assert!(
            is_told,
            "{name} may answer {} with {told}: {}",
            answer.status, answer.body
        );
        answer
    }

    /// Keeps what later paths and keys need.
    fn note(&mut self, name: &str, answer: &Answer) {
        let text = |pointer: &str| match answer.data().pointer(pointer).unwrap() {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match name {
            "create_invoice" => {
                self.places.insert("id", text("/id"));
                self.places.insert("invoice_id", text("/id"));
            }
            "add_webhook_endpoint" => drop(self.places.insert("endpoint_id", text("/id"))),
            "get_taxpayer" => drop(self.places.insert("contact_id", text("/users/0/id"))),
            "rotate_api_key" => drop(self.keys.insert("taxpayer_key", text("/api_key"))),
            "create_batch" => drop(self.places.insert("batch_no", text("/batch_no"))),
            "import_invoices" => drop(self.places.insert("import_no", text("/import_no"))),
            "list_deliveries" | "list_own_dead_letters" => {
                drop(self.places.insert("delivery_id", text("/data/0/id")));
            }
            "list_replays" => drop(self.places.insert("replay_id", text("/data/0/id"))),
            "acknowledge_supplier_invoice" => {
                drop(self.places.insert("id", self.taxpayer_id()));
            }
            "list_runs"
            | "list_dead_letters"
            | "list_reconciliations"
            | "list_integrators"
            | "list_operators" => {
                drop(self.places.insert("id", text("/data/0/id")));
            }
            _ => {}
        }
    }

    /// Checks the examples of the catalogue, and all that happened in the story, against the schemas of their messages.
    async fn events_are_as_the_catalogue_says(&self) {
        let catalogue = self.call("list_webhook_events").await;
        let mut schemas = BTreeMap::new();
        for entry in catalogue.data().as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            let schema = entry["schema"].as_str().unwrap();
            let (_, schema) = schema.split_once('#').unwrap();
            check_value(schema, &entry["example"]);
            schemas.insert(name.to_owned(), schema.to_owned());
        }
        let names: BTreeSet<_> = schemas.keys().map(String::as_str).collect();
        let all: BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names, all);
        let feed = self.call("list_events").await;
        let mut seen = BTreeSet::new();
        for event in feed.data()["events"].as_array().unwrap() {
            let name = event["type"].as_str().unwrap();
            check_value(&schemas[name], &self.message(event));
            seen.insert(name);
        }
        assert!(seen.len() >= 10, "the story causes most events: {seen:?}");
    }

    /// Returns the message that a webhook endpoint gets of an event in the feed.
    fn message(&self, event: &Value) -> Value {
        let taxpayer: i64 = self.taxpayer_id().parse().unwrap();
        let mut message = with(event, "taxpayer_id", json!(taxpayer));
        let members = message.as_object_mut().unwrap();
        members.remove("irn");
        if members["actor"].is_null() {
            members.remove("actor");
        }
        message
    }

    fn taxpayer_id(&self) -> String {
        self.places["taxpayer"].clone()
    }

    fn has_called_everything(&self) {
        let called: BTreeSet<_> = STORY.iter().map(|(name, _)| *name).chain(NO_JSON).collect();
        let names = self
            .operations
            .keys()
            .filter(|name| !name.contains("_by_") || *name == "get_by_unique_no");
        let missed: Vec<_> = names
            .filter(|name| !called.contains(name.as_str()))
            .collect();
        assert_eq!(missed, [""; 0], "operations that the story leaves out");
    }
}

/// Creates the account that the first start of a service creates: the examples are for whoever pastes them there. Returns
/// its id.
async fn create_demo_account(world: &World) -> String {
    let body = taxpayer_registered(number(), &Registration::demo());
    let body = with(&body, "name", json!("Demo Trading Ltd"));
    let body = with(&body, "email", json!("accounts@demo.example"));
    let body = with(&body, "contact_person.email", json!("ada.obi@demo.example"));
    let made = world.integrator().create_taxpayer(&body).await;
    made.expect_status(201).data()["id"].to_string()
}

/// Sends a write twice with one key, and checks that the second request does nothing. Returns the first answer.
async fn answer_of_repeated(name: &str, request: impl Fn() -> RequestBuilder) -> Answer {
    let key = format!("{name}-{}", number());
    let keyed = || Answer::to(request().header("idempotency-key", &key));
    let first = keyed().await;
    let again = keyed().await;
    assert_eq!(first.header("idempotent-replayed"), "", "{name}");
    let is_replayed = again.header("idempotent-replayed") == "true";
    let is_same = (first.status, &first.text) == (again.status, &again.text);
    let is_as_documented = match first.status {
        // A secret is shown once.
        200 | 201 if SHOW_SECRETS.contains(&name) => again.code() == "IDEMPOTENCY_KEY_REUSED",
        202 if name == "undo_batch" => again.status == 202 && !is_replayed,
        200..=299 | 409 => is_replayed && is_same,
        _ => true,
    };
    assert!(is_as_documented, "{name}: {} {}", first.text, again.text);
    first
}

#[on_sqlite]
async fn the_document_names_the_idempotency_key_of_every_write(world: &World) {
    let document = world.anonymous().get("/openapi.json").await;
    let all = operations(&document.expect_status(200).body);
    for (name, operation) in &all {
        assert_eq!(operation.is_keyed, operation.is_write(name), "{name}");
    }
}

fn operations(document: &Value) -> BTreeMap<String, Operation> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schemes = operation["security"].as_array().into_iter().flatten();
            let schemes = schemes.flat_map(|scheme| scheme.as_object().unwrap().keys().cloned());
            let described = |(status, response): (&String, &Value)| {
                (
                    status.clone(),
                    response["description"].as_str().unwrap().to_owned(),
                )
            };
            let one = Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                example: operation
                    .pointer("/requestBody/content/application~1json/example")
                    .cloned(),
                is_keyed: takes_key(operation),
                statuses: operation["responses"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(described)
                    .collect(),
                schemes: schemes.collect(),
            };
            all.insert(operation["operationId"].as_str().unwrap().to_owned(), one);
        }
    }
    all
}

fn takes_key(operation: &Value) -> bool {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters
        .map(|parameter| &parameter["name"])
        .any(|name| name == "Idempotency-Key")
}

/// The example of each operation that takes an IRN, with one that is none and with one of nobody's: whatever code the
/// refusal has, the document names it there.
#[on_sqlite]
async fn the_code_of_a_refused_irn_is_in_the_document(world: &World) {
    let document = world
        .anonymous()
        .get("/openapi.json")
        .await
        .expect_status(200)
        .body;
    let mut walk = Walk::through(world, &document).await;
    for name in ["create_taxpayer", "update_profile", "rotate_api_key"] {
        let answer = walk.call(name).await;
        walk.note(name, &answer);
    }
    walk.keys.remove("integrator_key");
    let mut seen = BTreeSet::new();
    for (name, operation) in &walk.operations {
        let Some(example) = &operation.example else {
            continue;
        };
        let Some(field) = ["irn", "supplier_irn"]
            .into_iter()
            .find(|field| example[field].is_string())
        else {
            continue;
        };
        for irn in ["odd", "INV0001-FFFFFFFF-20260115"] {
            let answer = walk
                .send(name, Some(&with(example, field, json!(irn))))
                .await;
            seen.insert(format!("{name} {}", answer.code()));
        }
    }
    for expected in [
        "submit IRN_MALFORMED",
        "submit IRN_SERVICE_ID_MISMATCH",
        "transmit IRN_MALFORMED",
        "transmit IRN_SERVICE_ID_MISMATCH",
        "get_supplier_invoice NOT_ADDRESSED_TO_CALLER",
    ] {
        assert!(seen.contains(expected), "{expected} in {seen:?}");
    }
}

#[on_sqlite]
async fn the_address_of_the_service_leads_to_the_document_and_a_browser_to_the_sign_in(
    world: &World,
) {
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(Policy::none());
    let http = http.build().unwrap();
    for (path, accept, expected) in [
        ("/", "*/*", (307, "/docs/")),
        (
            "/",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            (303, "/sign-in"),
        ),
    ] {
        let request = http
            .get(format!("{}{path}", world.root()))
            .header("accept", accept);
        let answer = request.send().await.unwrap();
        let location = answer.headers()["location"].to_str().unwrap();
        assert_eq!(
            (answer.status().as_u16(), location),
            expected,
            "{path} for {accept}"
        );
    }
}
