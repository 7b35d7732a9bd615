//! An account with something on each of its pages, and on each page of operators.

use einvoice::internals::{MailLinks, NoticeTopic, guide_paths};
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, submission};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{TAXPAYERS, Taxpayer};

use crate::support::account::{Account, first_customer, link_path};
use crate::support::supplies;
use crate::support::world::World;

/// A name as long as names are, which every page of the account shows at the top.
const NAME: &str = "Adebayo-Oluwaseun & Daughters International Commodities Ltd.";

pub(crate) struct Showcase {
    pub(crate) account: Account,
    /// Email and password of the integrator that onboarded it.
    pub(crate) integrator: (String, String),
    pages: Vec<(&'static str, String)>,
    _receiver: Receiver,
}

const OWN_REQUESTS: &str =
    "/v1/tax-payers/requests?status=2xx&per_page=100&path=/v1/tax-payers/invoices";
const INTEGRATORS_REQUESTS: &str =
    "/v1/system-integrators/requests?status=2xx&per_page=100&path=/v1/system";

impl Showcase {
    pub(crate) async fn new(world: &World) -> Self {
        let (integrator, email, password) = world.new_integrator_person().await;
        let account = Account::newcomer(world, &integrator).await;
        let taxpayer = &account.taxpayer;
        let id = account.taxpayer.id;
        let profile = json!({
            "name": NAME, "city": "Lagos", "state": "Lagos", "country": "NG", "logo": documents::logo(),
        });
        integrator
            .change_profile(id, &profile)
            .await
            .expect_status(200);
        let receiver = Receiver::start();
        let events = ["invoice.created", "invoice.signed"];
        integrator
            .set_webhook(id, &receiver.url(), &events)
            .await
            .expect_status(200);
        integrator.rotate_secret(id).await;
        let endpoint = add_endpoint(&integrator, id).await;
        keep_views(&account).await;
        let signed = taxpayer.invoice(&documents::invoice()).await;
        let body = submission(taxpayer, signed["invoice_no"].as_str().unwrap());
        taxpayer
            .app()
            .submit_to_the_end(&body)
            .await
            .expect_status(200);
        let approved = taxpayer.invoice(&documents::invoice()).await;
        taxpayer
            .set_status(&approved, "approved")
            .await
            .expect_status(200);
        account.refused_invoice().await;
        let odd = with(&documents::invoice(), "invoice_date", json!("yesterday"));
        let batch = taxpayer
            .create_batch(&[documents::invoice(), odd])
            .await
            .expect_status(201);
        let imported = taxpayer
            .send(
                "POST",
                "/v1/tax-payers/invoices/import",
                &documents::invoice(),
            )
            .await
            .expect_status(201);
        let supplied = supplies::received(world, taxpayer).await;
        let log = LogFacts::gather(&integrator, id).await;
        receiver.answer_always(Reply::Status(500));
        let draft = taxpayer.invoice(&documents::invoice()).await;
        let operator = world.new_operator().await;
        wait_for_dead_letter(&operator, id).await;
        fill_quarantine(world, id).await;
        let fault = FaultOrder::new(FaultKind::ServerError)
            .on(Operation::IrnValidate)
            .times(1_000_000);
        world.authority.add_fault(fault).unwrap();
        let waits = taxpayer.invoice(&documents::invoice()).await;
        let body = submission(taxpayer, waits["invoice_no"].as_str().unwrap());
        taxpayer.app().submit_async(&body).await.expect_status(202);
        let compared = operator.reconcile(id, "2026-01-15").await;
        add_findings(world, &compared.data()["id"]).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let run = text(&operator.newest_run(taxpayer).await["id"]);
        // The first create, and the change of the profile.
        let own = taxpayer.get(OWN_REQUESTS).await;
        let integrators = integrator.get(INTEGRATORS_REQUESTS).await;
        let facts = Facts {
            request: oldest_write(&own.expect_status(200), &json!(id)),
            integrators_request: oldest_write(&integrators.expect_status(200), &Value::Null),
            taxpayer: id,
            invoice: signed["id"].clone(),
            customer: first_customer(&account.page("/customers").await),
            editable: approved["id"].clone(),
            draft: draft["id"].clone(),
            irn: text(&signed["irn"]),
            batch: text(&batch.data()["batch_no"]),
            import: text(&imported.data()["import_no"]),
            supplied,
            log,
            endpoint,
            run,
            reconciliation: text(&compared.data()["id"]),
            invitation: make_invitation(&integrator, id).await,
            verify: verify_path(taxpayer, &signed["id"]).await,
            unsubscribe: MailLinks::new(world.settings().secrets.encryption_key)
                .unsubscribe_path("contact/1/1".parse().unwrap(), NoticeTopic::Outage),
        };
        Self {
            pages: facts.pages(),
            account,
            integrator: (email, password),
            _receiver: receiver,
        }
    }

    /// Returns all pages: pattern and path.
    pub(crate) fn pages(&self) -> Vec<(&'static str, String)> {
        self.pages.clone()
    }
}

/// Keeps a view of the list of invoices with a long name, and one with a short one.
async fn keep_views(account: &Account) {
    for (name, filter) in [
        (
            "Overdue in Lagos and Abuja, large",
            "overdue=true&sort=-payable",
        ),
        ("Drafts", "status=draft"),
    ] {
        let fields = [("name", name), ("filter", filter)];
        account.post("/invoices/views", &fields).await.expect(303);
    }
}

/// Adds a webhook endpoint at which nobody answers. Returns its id.
async fn add_endpoint(integrator: &testkit::roles::Integrator, id: i64) -> String {
    let path = format!("{}/endpoints", testkit::roles::webhook(id));
    let body = json!({
        "url": "http://127.0.0.1:9/warehouse", "enabled_events": ["invoice.acknowledged"],
        "description": "The warehouse",
    });
    let added = integrator
        .send("POST", &path, &body)
        .await
        .expect_status(201);
    added.data()["id"].as_str().unwrap().to_owned()
}

/// Returns the id of the first logged write of this taxpayer, or of the integrator itself.
fn oldest_write(log: &Answer, taxpayer: &Value) -> String {
    let entries = log.data()["data"].as_array().unwrap();
    let is_wanted = |one: &&Value| one["method"] != "GET" && one["taxpayer_id"] == *taxpayer;
    let found = entries.iter().rfind(is_wanted);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Returns the path of a link with which the contact person of a taxpayer chooses a password.
async fn make_invitation(integrator: &testkit::roles::Integrator, id: i64) -> String {
    let shown = integrator
        .get(&format!("{TAXPAYERS}/{id}"))
        .await
        .expect_status(200);
    let path = format!(
        "{TAXPAYERS}/{id}/contacts/{}/invitation",
        shown.data()["users"][0]["id"]
    );
    let made = integrator.call("POST", &path).await.expect_status(200);
    link_path(made.data()["link"].as_str().unwrap())
}

/// Returns the path of the public page of a signed invoice.
async fn verify_path(taxpayer: &Taxpayer, id: &Value) -> String {
    let shown = taxpayer
        .get(&format!("/v1/tax-payers/invoices/{id}?include=verify_link"))
        .await
        .expect_status(200);
    let link = shown.data()["verify_link"].as_str().unwrap();
    let (_, token) = link.split_once("/verify/").unwrap();
    format!("/verify/{token}")
}

/// Returns the path of a link to a delivery.
async fn share(integrator: &testkit::roles::Integrator, id: i64, delivery: &str) -> String {
    let path = format!("{}/deliveries/{delivery}/link", testkit::roles::webhook(id));
    let made = integrator.send("POST", &path, &json!({})).await;
    let made = made.expect_status(201);
    let url = made.data()["url"].as_str().unwrap();
    let (_, path) = url.split_once("/shared/").unwrap();
    format!("/shared/{path}")
}

/// Puts a command, a delivery and a task aside.
async fn fill_quarantine(world: &World, taxpayer: i64) {
    let panic = "index out of bounds: the len is 3 but the index is 7 at src/domain/invoice/totals.rs:118:24";
    for statement in [
        format!(
            "INSERT INTO quarantine (reference, actor, command, taxpayer_id, at, panic, state) VALUES \
             ('01900000-0000-7000-8000-{taxpayer:012}', '{taxpayer}', 'create', {taxpayer}, 1, '{panic}', 'kept')"
        ),
        format!(
            "UPDATE deliveries SET crashes = 3, is_lifted = TRUE WHERE taxpayer_id = {taxpayer} AND state = 'dead'"
        ),
        format!(
            "INSERT INTO lanes (kind, key, epoch, version, taxpayer_id, next_due_at, lease_until, crashes) \
             VALUES ('pull', 'of {taxpayer}', 3, 0, {taxpayer}, 9000000000000000, 0, 3)"
        ),
    ] {
        assert!(world.execute(&statement).await > 0, "{statement}");
    }
}

/// Waits for the first delivery and returns its number.
async fn wait_for_delivery(integrator: &testkit::roles::Integrator, id: i64) -> String {
    let look = async || {
        let log = integrator
            .deliveries(id, "?state=delivered")
            .await
            .expect_status(200);
        log.data()["data"][0]["id"].as_str().map(str::to_owned)
    };
    eventually("a delivery", look).await
}

async fn wait_for_dead_letter(operator: &testkit::roles::Operator, taxpayer: i64) {
    let look = async || {
        let letters = operator
            .dead_letters(&format!("?taxpayer_id={taxpayer}"))
            .await
            .expect_status(200);
        let all = letters.data()["data"].as_array();
        all.is_some_and(|all| !all.is_empty()).then_some(())
    };
    eventually("a dead letter", look).await;
}

/// What the parameters of paths in the log of the webhook are.
struct LogFacts {
    delivery: String,
    replay: String,
    /// The path of a link to the delivery.
    shared: String,
}

impl LogFacts {
    async fn gather(integrator: &testkit::roles::Integrator, id: i64) -> Self {
        let delivery = wait_for_delivery(integrator, id).await;
        // It finds nothing that is missing.
        let replay = integrator.replay(id, json!(0), "missing").await;
        let replay = replay.expect_status(200);
        Self {
            shared: share(integrator, id, &delivery).await,
            replay: replay.data()["id"].as_str().unwrap().to_owned(),
            delivery,
        }
    }
}

/// Returns the pages of the documentation: all of the guides, and of the reference the longest and the shortest.
fn docs_pages() -> Vec<(&'static str, String)> {
    const GUIDE: &str = "/docs/guides/{guide}";
    const SECTION: &str = "/docs/guides/{guide}/{section}";
    const OPERATION: &str = "/docs/reference/{operation}";
    let as_they_are = [
        ("/docs/", "/docs/"),
        ("/docs/search", "/docs/search?q=webhook"),
        ("/docs/reference", "/docs/reference"),
        (OPERATION, "/docs/reference/create_full_invoice"),
        (OPERATION, "/docs/reference/overview"),
        (OPERATION, "/docs/reference/live"),
        ("/docs/errors", "/docs/errors"),
        ("/docs/errors/{code}", "/docs/errors/VALIDATION_FAILED"),
    ];
    let guides = guide_paths().into_iter().map(|path| {
        let is_section = path.matches('/').count() > 3;
        (if is_section { SECTION } else { GUIDE }, path)
    });
    let as_they_are = as_they_are.map(|(pattern, path)| (pattern, path.to_owned()));
    as_they_are.into_iter().chain(guides).collect()
}

/// What the parameters of paths are.
/// Adds a difference to decide, one that was decided and one that was repaired.
async fn add_findings(world: &World, reconciliation: &Value) {
    let id = reconciliation.as_str().unwrap();
    let add = format!(
        "INSERT INTO reconciliation_findings (taxpayer_id, reconciliation_id, number, kind, irn, local, remote, action, \
         detail, decided_at, decided_by, decided_because) \
         SELECT taxpayer_id, id, 1, 'missing_remotely', 'INV0900-94AD90FB-20260115', 'submitted', NULL, 'listed', \
         'The authority said yes to it and does not have it.', NULL, NULL, NULL FROM reconciliations WHERE id = '{id}' \
         UNION ALL SELECT taxpayer_id, id, 2, 'missing_locally', 'PAPER-AND-A-LONG-NUMBER-0901-94AD90FB-20260115', NULL, \
         'signed, transmitted', 'listed', 'It was signed by another way than this service.', 1768500000000000, 1, \
         'An invoice of the time before, by the letter of the taxpayer' FROM reconciliations WHERE id = '{id}' \
         UNION ALL SELECT taxpayer_id, id, 3, 'unfinished_locally', 'INV0902-94AD90FB-20260115', 'paused', 'signed', \
         'mended', 'The run goes on now.', NULL, NULL, NULL FROM reconciliations WHERE id = '{id}'"
    );
    assert_eq!(world.execute(&add).await, 3);
    let count = format!(
        "UPDATE reconciliations SET compared = 3, repaired = 1, listed = 1, decided = 1 WHERE id = '{id}'"
    );
    assert_eq!(world.execute(&count).await, 1);
}

struct Facts {
    taxpayer: i64,
    invoice: Value,
    customer: String,
    /// An invoice that can still be changed.
    editable: Value,
    draft: Value,
    irn: String,
    batch: String,
    import: String,
    supplied: String,
    log: LogFacts,
    endpoint: String,
    request: String,
    integrators_request: String,
    run: String,
    reconciliation: String,
    invitation: String,
    verify: String,
    unsubscribe: String,
}

impl Facts {
    fn pages(&self) -> Vec<(&'static str, String)> {
        let as_they_are = [
            "/sign-in",
            "/sign-in/forgotten",
            "/account/confirm",
            "/account/mails",
            "/account/password",
            "/account/second-factor",
            "/account/sessions",
            "/console",
            "/console/audit",
            "/console/breakers",
            "/console/deliveries",
            "/console/deliveries/dead-letters",
            "/console/integrators",
            "/console/keys",
            "/console/lanes",
            "/console/mails",
            "/console/operators",
            "/console/quarantine",
            "/console/reconciliations",
            "/console/replicas",
            "/console/runs",
            "/console/supervision",
            "/console/taxpayers",
            "/console/top-taxpayers",
            "/dashboard/taxpayers",
            "/dashboard/taxpayers/activity",
            "/dashboard/taxpayers/requests",
            "/dashboard/taxpayers/new",
        ];
        let as_they_are = as_they_are.map(|path| (path, path.to_owned()));
        let of_nobody = [
            ("/sign-in/invitation/{token}", self.invitation.clone()),
            ("/verify/{token}", self.verify.clone()),
            ("/shared/deliveries/{token}", self.log.shared.clone()),
            (
                "/dashboard/taxpayers/requests/{request}",
                format!("/dashboard/taxpayers/requests/{}", self.integrators_request),
            ),
            (
                "/sign-in/unsubscribe/{person}/{topic}/{signature}",
                self.unsubscribe.clone(),
            ),
            (
                "/dashboard/taxpayers/webhooks",
                "/dashboard/taxpayers/webhooks?all=true".to_owned(),
            ),
        ];
        let as_they_are = as_they_are.into_iter().chain(of_nobody);
        as_they_are
            .chain(docs_pages())
            .chain(self.operator_pages())
            .chain(self.account_pages())
            .collect()
    }

    fn operator_pages(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self {
            taxpayer,
            invoice,
            irn,
            run,
            reconciliation,
            ..
        } = self;
        [
            (
                "/console/reconciliations/{id}",
                format!("/console/reconciliations/{reconciliation}"),
            ),
            ("/console/runs/{id}", format!("/console/runs/{run}")),
            (
                "/console/runs/move/preview",
                format!(
                    "/console/runs/move/preview?act=pause&all=true&filter=taxpayer_id%3D{taxpayer}"
                ),
            ),
            (
                "/console/deliveries/endpoints/move/preview",
                "/console/deliveries/endpoints/move/preview?act=enable&all=true".to_owned(),
            ),
            (
                "/console/deliveries/dead-letters/move/preview",
                format!(
                    "/console/deliveries/dead-letters/move/preview?act=replay&all=true&filter=taxpayer_id%3D{taxpayer}"
                ),
            ),
            (
                "/console/quarantine/move/preview",
                "/console/quarantine/move/preview?act=drop&all=true".to_owned(),
            ),
            (
                "/console/taxpayers/{id}",
                format!("/console/taxpayers/{taxpayer}"),
            ),
            (
                "/console/taxpayers/{taxpayer}/invoices/{id}",
                format!("/console/taxpayers/{taxpayer}/invoices/{invoice}"),
            ),
            (
                "/console/taxpayers/{taxpayer}/history",
                format!("/console/taxpayers/{taxpayer}/history?irn={irn}"),
            ),
            (
                "/console/taxpayers/{taxpayer}/irn",
                format!("/console/taxpayers/{taxpayer}/irn?irn={irn}"),
            ),
        ]
        .into_iter()
    }

    fn account_pages(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self {
            taxpayer,
            invoice,
            customer,
            editable,
            draft,
            batch,
            import,
            supplied,
            request,
            ..
        } = self;
        let pages = [
            ("/dashboard/{taxpayer}", String::new()),
            ("/dashboard/{taxpayer}/activity", "/activity".to_owned()),
            ("/dashboard/{taxpayer}/batches", "/batches".to_owned()),
            (
                "/dashboard/{taxpayer}/batches/{batch_no}",
                format!("/batches/{batch}"),
            ),
            ("/dashboard/{taxpayer}/contacts", "/contacts".to_owned()),
            ("/dashboard/{taxpayer}/customers", "/customers".to_owned()),
            (
                "/dashboard/{taxpayer}/customers/{customer}",
                format!("/customers/{customer}"),
            ),
            (
                "/dashboard/{taxpayer}/customers/{customer}/edit",
                format!("/customers/{customer}/edit"),
            ),
            ("/dashboard/{taxpayer}/import", "/import".to_owned()),
            (
                "/dashboard/{taxpayer}/imports/{import_no}",
                format!("/imports/{import}"),
            ),
            ("/dashboard/{taxpayer}/inbox", "/inbox".to_owned()),
            (
                "/dashboard/{taxpayer}/inbox/{irn}",
                format!("/inbox/{supplied}"),
            ),
            (
                "/dashboard/{taxpayer}/integration",
                "/integration".to_owned(),
            ),
            ("/dashboard/{taxpayer}/invoices", "/invoices".to_owned()),
            (
                "/dashboard/{taxpayer}/invoices/{id}",
                format!("/invoices/{invoice}"),
            ),
            (
                "/dashboard/{taxpayer}/invoices/bulk",
                format!("/invoices/bulk?act=approve&filter=&id={draft}"),
            ),
            (
                "/dashboard/{taxpayer}/batches/{batch_no}/undo",
                format!("/batches/{batch}/undo"),
            ),
            (
                "/dashboard/{taxpayer}/invoices/new",
                "/invoices/new".to_owned(),
            ),
            (
                "/dashboard/{taxpayer}/invoices/{id}/credit-note",
                format!("/invoices/{invoice}/credit-note"),
            ),
            (
                "/dashboard/{taxpayer}/invoices/{id}/correct",
                format!("/invoices/{invoice}/correct"),
            ),
            (
                "/dashboard/{taxpayer}/invoices/{id}/correct/preview",
                format!("/invoices/{invoice}/correct/preview?cancel=yes"),
            ),
            (
                "/dashboard/{taxpayer}/invoices/{id}/edit",
                format!("/invoices/{editable}/edit"),
            ),
            ("/dashboard/{taxpayer}/keys", "/keys".to_owned()),
            (
                "/dashboard/{taxpayer}/notifications",
                "/notifications".to_owned(),
            ),
            ("/dashboard/{taxpayer}/profile", "/profile".to_owned()),
            (
                "/dashboard/{taxpayer}/reports",
                "/reports?month=2026-01".to_owned(),
            ),
            ("/dashboard/{taxpayer}/requests", "/requests".to_owned()),
            (
                "/dashboard/{taxpayer}/requests/{request}",
                format!("/requests/{request}"),
            ),
        ];
        let account = format!("/dashboard/{taxpayer}");
        pages
            .into_iter()
            .chain(self.webhook_pages())
            .map(move |(pattern, rest)| (pattern, format!("{account}{rest}")))
    }

    fn webhook_pages(&self) -> [(&'static str, String); 8] {
        let Self { endpoint, log, .. } = self;
        let LogFacts {
            delivery, replay, ..
        } = log;
        [
            ("/dashboard/{taxpayer}/webhooks", "/webhooks".to_owned()),
            (
                "/dashboard/{taxpayer}/webhooks/endpoints/new",
                "/webhooks/endpoints/new".to_owned(),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}",
                format!("/webhooks/endpoints/{endpoint}"),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/events",
                "/webhooks/events".to_owned(),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/deliveries",
                "/webhooks/deliveries".to_owned(),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}",
                format!("/webhooks/deliveries/{delivery}"),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/deliveries/bulk",
                "/webhooks/deliveries/bulk?all=true&filter=state%3Ddelivered".to_owned(),
            ),
            (
                "/dashboard/{taxpayer}/webhooks/replays/{replay}",
                format!("/webhooks/replays/{replay}"),
            ),
        ]
    }
}
