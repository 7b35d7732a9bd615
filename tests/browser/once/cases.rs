//! Each form that counts once: where it is, what is sent with it, and how its effects are counted.

use crate::support::account::PASSWORD;

/// A form: the patterns of its page and of itself, its fields, and a query that counts its effects.
pub(super) struct Case {
    pub(super) page: &'static str,
    pub(super) form: &'static str,
    pub(super) fields: String,
    pub(super) effects: String,
    /// A statement that brings the page into the state in which it offers the form.
    pub(super) preparation: Option<String>,
}

impl Case {
    fn after(self, preparation: impl Into<String>) -> Self {
        Self {
            preparation: Some(preparation.into()),
            ..self
        }
    }
}

pub(super) fn case(page: &'static str, form: &'static str, fields: &str, effects: String) -> Case {
    Case {
        page,
        form,
        fields: fields.to_owned(),
        effects,
        preparation: None,
    }
}

pub(super) fn audit_query(action: &str) -> String {
    format!("SELECT count(*) FROM audit WHERE action = '{action}'")
}

fn events_query(kind: &str) -> String {
    format!("SELECT count(*) FROM events WHERE kind = '{kind}'")
}

fn runs_query(operation: &str) -> String {
    format!("SELECT count(*) FROM pipeline_runs WHERE operation = '{operation}'")
}

/// Gives the newest of some accounts a second factor, as its person would by an authenticator app.
fn second_factor(kind: &str, accounts: &str) -> String {
    format!(
        "INSERT INTO second_factors (owner, secret, confirmed_at) \
         SELECT '{kind}/' || max(id), '', 1 FROM {accounts}"
    )
}

/// The pattern of the page of an invoice that is a draft; the showcase opens one that is further.
pub(super) const DRAFT: &str = "/dashboard/{taxpayer}/invoices/{id} of a draft";

/// The forms of the profile and of the settings on its page. The showcase has a logo.
pub(super) fn profile_cases() -> Vec<Case> {
    vec![
        case(
            "/dashboard/{taxpayer}/profile",
            "/dashboard/{taxpayer}/profile",
            "city=Ibadan",
            audit_query("taxpayer.update-profile"),
        ),
        case(
            "/dashboard/{taxpayer}/profile",
            "/dashboard/{taxpayer}/profile/settings",
            "template=compact",
            audit_query("taxpayer.update-profile"),
        ),
        case(
            "/dashboard/{taxpayer}/profile",
            "/dashboard/{taxpayer}/profile/logo",
            "remove=true",
            audit_query("taxpayer.update-profile"),
        ),
    ]
}

/// The fields that a person fills in on the form of a new invoice.
const NEW_INVOICE: &str = "invoice_no=ONCE1&invoice_category=B2C&due_date=2026-03-31&customer.no=C-ONCE\
    &customer.name=Once+Shop&customer.email=once@shop.example&customer.address_street_name=5+Broad+Street\
    &customer.address_city=Abuja&customer.address_state=FCT&customer.address_postal_code=900001\
    &customer.address_country=NG&lines.0.item_name=Laptop&lines.0.item_no=ONCE-1\
    &lines.0.product_category=8471.30&lines.0.quantity=1&lines.0.price_unit=EA&lines.0.unit_price=10\
    &lines.0.tax_category=STANDARD_VAT";

/// The forms about invoices, in an order in which each finds what it needs.
pub(super) fn invoice_cases() -> Vec<Case> {
    vec![
        case(
            DRAFT,
            "/dashboard/{taxpayer}/invoices/{id}/status",
            "status=approved",
            events_query("invoice.status-updated"),
        ),
        case(
            DRAFT,
            "/dashboard/{taxpayer}/invoices/{id}/submit",
            "",
            runs_query("submit"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/bulk",
            "/dashboard/{taxpayer}/invoices/bulk",
            "",
            events_query("invoice.status-updated"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}/edit",
            "/dashboard/{taxpayer}/invoices/{id}/edit",
            "due_date=2026-03-01",
            events_query("invoice.updated"),
        ),
        case(
            "/dashboard/{taxpayer}/customers/{customer}/edit",
            "/dashboard/{taxpayer}/customers/{customer}/edit",
            "address_city=Ibadan",
            audit_query("customer.update"),
        ),
        case(
            "/dashboard/{taxpayer}/batches/{batch_no}/undo",
            "/dashboard/{taxpayer}/batches/{batch_no}/undo",
            "",
            events_query("invoice.status-updated"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/new",
            "/dashboard/{taxpayer}/invoices/new",
            NEW_INVOICE,
            events_query("invoice.created"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}/credit-note",
            "/dashboard/{taxpayer}/invoices/{id}/credit-note",
            "",
            events_query("invoice.created"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}/correct/preview",
            "/dashboard/{taxpayer}/invoices/{id}/correct",
            "",
            "SELECT count(*) FROM corrections".to_owned(),
        )
        .after(
            "UPDATE invoices SET status = 'cancelled' WHERE is_credit_note AND status = 'draft'",
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}",
            "/dashboard/{taxpayer}/invoices/{id}/transmit",
            "",
            runs_query("transmit"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}",
            "/dashboard/{taxpayer}/invoices/{id}/payment",
            "payment_status=partial&amount=7&remark=first part",
            events_query("payment.status-updated"),
        ),
        case(
            "/dashboard/{taxpayer}/invoices/{id}",
            "/dashboard/{taxpayer}/invoices/{id}/payment/take-back",
            "remark=of another invoice",
            events_query("payment.status-updated"),
        ),
    ]
}

/// The forms of an owner, without those about invoices and webhooks, in an order in which each finds what it needs.
/// `received` is an invoice in the inbox that nobody has acknowledged.
pub(super) fn owner_cases(taxpayer: i64, received: &str) -> Vec<Case> {
    let acknowledged = "SELECT count(*) FROM supplier_invoices WHERE acknowledged_at IS NOT NULL";
    let contacts = "/dashboard/{taxpayer}/contacts";
    let keys = "/dashboard/{taxpayer}/keys";
    let request = "/dashboard/{taxpayer}/requests/{request}";
    vec![
        // A request that a page sends has the label of a person, not that of a key.
        case(
            request,
            "/dashboard/{taxpayer}/requests/{request}/send",
            "",
            "SELECT count(*) FROM request_log WHERE key_label NOT LIKE '%…%'".to_owned(),
        ),
        case(
            contacts,
            contacts,
            "first_name=Ada&last_name=Obi&email=ada.obi@once.example&role=read_only",
            audit_query("contact.add"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/role",
            "role=accountant",
            audit_query("contact.change-role"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/invitation",
            "",
            audit_query("invitation.make"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/disable",
            "",
            audit_query("contact.disable"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/enable",
            "",
            audit_query("contact.enable"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/second-factor/reset",
            "",
            audit_query("second-factor.reset"),
        )
        .after(second_factor("contact", &contacts_query(taxpayer))),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/remove",
            "",
            audit_query("contact.remove"),
        ),
        case(
            keys,
            keys,
            "scope=full&name=for the till",
            audit_query("taxpayer.rotate-key"),
        ),
        case(
            keys,
            "/dashboard/{taxpayer}/keys/rotate",
            "scope=full",
            audit_query("taxpayer.rotate-key"),
        ),
        case(
            keys,
            "/dashboard/{taxpayer}/keys/{key}/revoke",
            "",
            audit_query("taxpayer.revoke-key"),
        ),
        case(
            "/dashboard/{taxpayer}/integration",
            "/dashboard/{taxpayer}/integration",
            "erp_system=Sage",
            audit_query("taxpayer.set-integration"),
        ),
        case(
            "/dashboard/{taxpayer}/inbox",
            "/dashboard/{taxpayer}/inbox/acknowledge",
            &format!("id={received}"),
            acknowledged.to_owned(),
        ),
        case(
            "/dashboard/{taxpayer}/inbox/{irn}",
            "/dashboard/{taxpayer}/inbox/{irn}/acknowledge",
            "",
            acknowledged.to_owned(),
        ),
    ]
}

/// The forms of an owner about webhooks, in an order in which each finds what it needs.
pub(super) fn webhook_cases(taxpayer: i64, receiver: &str) -> Vec<Case> {
    let webhooks = "/dashboard/{taxpayer}/webhooks";
    let address: String = url::form_urlencoded::byte_serialize(receiver.as_bytes()).collect();
    let settings = format!("webhook_url={address}");
    let new = "/dashboard/{taxpayer}/webhooks/endpoints/new";
    let endpoint = "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}";
    let added = format!("url={address}&enabled_events=invoice.created");
    vec![
        case(new, new, &added, audit_query("webhook.update")),
        case(endpoint, endpoint, "description=The store", audit_query("webhook.update")),
        case(
            endpoint,
            "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/secret",
            "",
            audit_query("webhook.rotate-secret"),
        ),
        case(
            endpoint,
            "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/replay",
            "since=2026-01-15&only=missing",
            audit_query("webhook.replay"),
        ),
        case(
            endpoint,
            "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/enable",
            "replay=none",
            audit_query("webhook.enable"),
        )
        .after("UPDATE webhooks SET is_active = FALSE, disabled_reason = 'It answered 410.' WHERE owner_id IS NOT NULL"),
        case(
            endpoint,
            "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/remove",
            "",
            audit_query("webhook.update"),
        ),
        case(webhooks, webhooks, &settings, audit_query("webhook.update")),
        case(webhooks, "/dashboard/{taxpayer}/webhooks/secret", "", audit_query("webhook.rotate-secret")),
        case(
            webhooks,
            "/dashboard/{taxpayer}/webhooks/replay",
            "since=2026-01-15&only=missing",
            audit_query("webhook.replay"),
        ),
        case(webhooks, "/dashboard/{taxpayer}/webhooks/enable", "replay=none", audit_query("webhook.enable")).after(
            "UPDATE webhooks SET is_active = FALSE, disabled_reason = 'It answered 410.', disabled_after = 1",
        ),
        case(
            webhooks,
            "/dashboard/{taxpayer}/webhooks/replays/{replay}/cancel",
            "",
            audit_query("webhook.cancel-replay"),
        )
        .after(format!(
            "INSERT INTO replays (taxpayer_id, id, scope, state, after, until, position, queued, created_at, \
             updated_at) VALUES ({taxpayer}, '01900000-0000-7000-8000-000000000001', 'all', 'running', 0, 9, 0, 0, 1, 1)"
        )),
        case(
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}",
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/resend",
            "",
            audit_query("webhook.replay"),
        ),
        case(
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}",
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/link",
            "valid_for_s=86400",
            audit_query("webhook.share-delivery"),
        ),
        case(
            "/dashboard/{taxpayer}/webhooks/deliveries/bulk",
            "/dashboard/{taxpayer}/webhooks/deliveries/bulk",
            "",
            audit_query("webhook.replay"),
        ),
    ]
}

const REASON_FIELD: &str = "reason=asked on the telephone";

/// A form with a reason, whose effect is an entry of the audit.
fn audited(page: &'static str, form: &'static str, action: &str) -> Case {
    case(page, form, REASON_FIELD, audit_query(action))
}

/// The forms with which operators move work, in an order in which each finds what it needs.
pub(super) fn work_cases(taxpayer: i64) -> Vec<Case> {
    let breakers = "/console/breakers";
    let quarantine = "/console/quarantine";
    let run = "/console/runs/{id}";
    let day = format!("taxpayer_id={taxpayer}&day=2026-01-16");
    vec![
        audited(breakers, "/console/breakers/{operation}/trip", "breaker.trip"),
        audited(breakers, "/console/breakers/{operation}/reset", "breaker.reset"),
        audited(run, "/console/runs/{id}/contact-data", "invoice.show-contact-data"),
        audited(run, "/console/runs/{id}/pause", "run.pause"),
        audited(run, "/console/runs/{id}/resume", "run.resume"),
        audited("/console/runs/move/preview", "/console/runs/move", "runs.move"),
        audited(run, "/console/runs/{id}/cancel", "run.cancel"),
        audited(quarantine, "/console/quarantine/{reference}/replay", "command.replay"),
        case(
            quarantine,
            "/console/quarantine/{reference}/drop",
            REASON_FIELD,
            "SELECT count(*) FROM audit WHERE action IN ('command.drop', 'delivery.drop')"
                .to_owned(),
        ),
        audited("/console/quarantine/move/preview", "/console/quarantine/move", "quarantine.move")
        .after(
            "INSERT INTO quarantine (reference, actor, command, taxpayer_id, at, panic, state) \
             VALUES ('01900000-0000-7000-8000-0000000000f1', '1', 'pay', 1, 1, 'it panicked', 'kept')",
        ),
        case(
            "/console/reconciliations",
            "/console/reconciliations",
            &day,
            audit_query("taxpayer.reconcile"),
        ),
        case(
            "/console/reconciliations/{id}",
            "/console/reconciliations/{id}/decide",
            "finding=1&reason=A%20letter.",
            audit_query("findings.decide"),
        ),
        case(
            "/console/reconciliations/{id}",
            "/console/reconciliations/{id}/reopen",
            "finding=2&reason=A%20mistake.",
            audit_query("findings.reopen"),
        ),
        audited("/console/deliveries/dead-letters", "/console/deliveries/dead-letters/{id}/replay", "delivery.replay"),
        audited("/console/deliveries/dead-letters/move/preview", "/console/deliveries/dead-letters/move", "dead-letters.move"),
        audited("/console/deliveries/endpoints/move/preview", "/console/deliveries/endpoints/move", "endpoints.move")
        .after("UPDATE webhooks SET is_active = false, disabled_reason = 'It was gone.'"),
        audited("/console/taxpayers/{taxpayer}/history", "/console/taxpayers/{taxpayer}/history/contact-data", "invoice.show-contact-data"),
    ]
}

fn contacts_query(taxpayer: i64) -> String {
    format!("contacts WHERE taxpayer_id = {taxpayer}")
}

/// The forms with which admins change accounts, in an order in which each finds what it needs.
pub(super) fn account_cases(taxpayer: i64) -> Vec<Case> {
    let taxpayer_page = "/console/taxpayers/{id}";
    vec![
        case(
            "/console/keys",
            "/console/keys/{kind}/{owner}/{key}/revoke",
            REASON_FIELD,
            "SELECT count(*) FROM audit WHERE action LIKE '%.revoke-key%'".to_owned(),
        ),
        case(
            taxpayer_page,
            "/console/taxpayers/{taxpayer}/contacts/{contact}/invitation",
            REASON_FIELD,
            audit_query("invitation.make"),
        ),
        case(
            taxpayer_page,
            "/console/taxpayers/{taxpayer}/contacts/{contact}/second-factor/reset",
            REASON_FIELD,
            audit_query("second-factor.reset"),
        )
        .after(second_factor("contact", &contacts_query(taxpayer))),
        case(taxpayer_page, "/console/taxpayers/{id}/verify", REASON_FIELD, audit_query("taxpayer.verify"))
            .after("UPDATE taxpayers SET verification = 'unverified', verification_reason = 'tin_mismatch'"),
        audited(taxpayer_page, "/console/taxpayers/{id}/pause", "taxpayer.pause"),
        audited(taxpayer_page, "/console/taxpayers/{id}/resume", "taxpayer.resume"),
        case(
            taxpayer_page,
            "/console/taxpayers/{id}/subscription",
            "subscription=inactive",
            audit_query("taxpayer.set-subscription"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{integrator}/invitation",
            REASON_FIELD,
            audit_query("invitation.make"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{integrator}/second-factor/reset",
            REASON_FIELD,
            audit_query("second-factor.reset"),
        )
        .after(second_factor("integrator", "integrators")),
        case(
            "/console/integrators",
            "/console/integrators/{id}/access",
            "reason=gone&move=disable",
            audit_query("integrator.disable"),
        ),
        case(
            "/console/operators",
            "/console/operators/{operator}/invitation",
            REASON_FIELD,
            audit_query("invitation.make"),
        ),
        case(
            "/console/operators",
            "/console/operators/{operator}/second-factor/reset",
            REASON_FIELD,
            audit_query("second-factor.reset"),
        )
        .after(second_factor("operator", "operators")),
        case(
            "/console/operators",
            "/console/operators/{id}/role",
            "reason=new work&role=viewer",
            audit_query("operator.change-role"),
        ),
        case(
            "/console/operators",
            "/console/operators/{id}/access",
            "reason=gone&move=disable",
            audit_query("operator.disable"),
        ),
    ]
}

/// The forms with which a person changes its own account, before and after those of the second factor. The last one
/// ends the session.
pub(super) fn own_account_cases() -> [Case; 3] {
    let passwords =
        format!("current={PASSWORD}&new=four more plain words&again=four more plain words");
    [
        case(
            "/account/sessions",
            "/account/sessions/end",
            "",
            audit_query("session.end-others"),
        ),
        case(
            "/account/password",
            "/account/password",
            &passwords,
            audit_query("password.change"),
        ),
        case(
            "/account/sessions",
            "/sign-out",
            "",
            audit_query("session.sign-out"),
        ),
    ]
}
