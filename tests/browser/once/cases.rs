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
        Self { preparation: Some(preparation.into()), ..self }
    }
}

pub(super) fn case(page: &'static str, form: &'static str, fields: &str, effects: String) -> Case {
    Case { page, form, fields: fields.to_owned(), effects, preparation: None }
}

pub(super) fn audit(action: &str) -> String {
    format!("SELECT count(*) FROM audit WHERE action = '{action}'")
}

fn events(kind: &str) -> String {
    format!("SELECT count(*) FROM events WHERE kind = '{kind}'")
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

/// The forms of an owner, without those about webhooks, in an order in which each finds what it needs.
pub(super) fn cases_of_owner(taxpayer: i64) -> Vec<Case> {
    let invoice = "/dashboard/{taxpayer}/invoices/{id}";
    let contacts = "/dashboard/{taxpayer}/contacts";
    let keys = "/dashboard/{taxpayer}/keys";
    vec![
        case(
            DRAFT,
            "/dashboard/{taxpayer}/invoices/{id}/status",
            "status=approved&remark=as agreed",
            events("invoice.status-updated"),
        ),
        case(
            invoice,
            "/dashboard/{taxpayer}/invoices/{id}/payment",
            "payment_status=partial&amount=7&remark=first part",
            events("payment.status-updated"),
        ),
        case(
            "/dashboard/{taxpayer}/profile",
            "/dashboard/{taxpayer}/profile",
            "city=Ibadan",
            audit("taxpayer.update-profile"),
        ),
        case(
            contacts,
            contacts,
            "first_name=Ada&last_name=Obi&email=ada.obi@once.example&role=read_only",
            audit("contact.add"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/role",
            "role=accountant",
            audit("contact.change-role"),
        ),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/invitation", "", audit("invitation.make")),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/disable", "", audit("contact.disable")),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/enable", "", audit("contact.enable")),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/second-factor/reset",
            "",
            audit("second-factor.reset"),
        )
        .after(second_factor("contact", &contacts_of(taxpayer))),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/remove", "", audit("contact.remove")),
        case(keys, keys, "scope=full&name=for the till", audit("taxpayer.rotate-key")),
        case(keys, "/dashboard/{taxpayer}/keys/rotate", "scope=full", audit("taxpayer.rotate-key")),
        case(keys, "/dashboard/{taxpayer}/keys/{key}/revoke", "", audit("taxpayer.revoke-key")),
        case(
            "/dashboard/{taxpayer}/integration",
            "/dashboard/{taxpayer}/integration",
            "erp_system=Sage",
            audit("taxpayer.set-integration"),
        ),
        case(
            "/dashboard/{taxpayer}/inbox/{irn}",
            "/dashboard/{taxpayer}/inbox/{irn}/acknowledge",
            "",
            "SELECT count(*) FROM supplier_invoices WHERE acknowledged_at IS NOT NULL".to_owned(),
        ),
    ]
}

/// The forms of an owner about webhooks, in an order in which each finds what it needs.
pub(super) fn cases_of_webhooks(taxpayer: i64, receiver: &str) -> Vec<Case> {
    let webhooks = "/dashboard/{taxpayer}/webhooks";
    let address: String = url::form_urlencoded::byte_serialize(receiver.as_bytes()).collect();
    let settings = format!("webhook_url={address}");
    vec![
        case(webhooks, webhooks, &settings, audit("webhook.update")),
        case(webhooks, "/dashboard/{taxpayer}/webhooks/secret", "", audit("webhook.rotate-secret")),
        case(
            webhooks,
            "/dashboard/{taxpayer}/webhooks/replay",
            "since=2026-01-15&only=missing",
            audit("webhook.replay"),
        ),
        case(webhooks, "/dashboard/{taxpayer}/webhooks/enable", "replay=none", audit("webhook.enable")).after(
            "UPDATE webhooks SET is_active = FALSE, disabled_reason = 'It answered 410.', disabled_after = 1",
        ),
        case(
            webhooks,
            "/dashboard/{taxpayer}/webhooks/replays/{replay}/cancel",
            "",
            audit("webhook.cancel-replay"),
        )
        .after(format!(
            "INSERT INTO replays (taxpayer_id, id, scope, state, after, until, position, queued, created_at, \
             updated_at) VALUES ({taxpayer}, '01900000-0000-7000-8000-000000000001', 'all', 'running', 0, 9, 0, 0, 1, 1)"
        )),
        case(
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}",
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/resend",
            "",
            audit("webhook.replay"),
        ),
    ]
}

const BECAUSE: &str = "reason=asked on the telephone";

/// The forms with which operators move work, in an order in which each finds what it needs.
pub(super) fn cases_of_work(taxpayer: i64) -> Vec<Case> {
    let breakers = "/console/breakers";
    let quarantine = "/console/quarantine";
    let run = "/console/runs/{id}";
    let day = format!("taxpayer_id={taxpayer}&day=2026-01-16");
    vec![
        case(breakers, "/console/breakers/{operation}/trip", BECAUSE, audit("breaker.trip")),
        case(breakers, "/console/breakers/{operation}/reset", BECAUSE, audit("breaker.reset")),
        case(run, "/console/runs/{id}/contact-data", BECAUSE, audit("invoice.show-contact-data")),
        case(run, "/console/runs/{id}/pause", BECAUSE, audit("run.pause")),
        case(run, "/console/runs/{id}/resume", BECAUSE, audit("run.resume")),
        case(run, "/console/runs/{id}/cancel", BECAUSE, audit("run.cancel")),
        case(quarantine, "/console/quarantine/{reference}/replay", BECAUSE, audit("command.replay")),
        case(
            quarantine,
            "/console/quarantine/{reference}/drop",
            BECAUSE,
            "SELECT count(*) FROM audit WHERE action IN ('command.drop', 'delivery.drop')".to_owned(),
        ),
        case("/console/reconciliations", "/console/reconciliations", &day, audit("taxpayer.reconcile")),
        case(
            "/console/deliveries/dead-letters",
            "/console/deliveries/dead-letters/{id}/replay",
            BECAUSE,
            audit("delivery.replay"),
        ),
        case(
            "/console/deliveries/dead-letters",
            "/console/deliveries/dead-letters/replay",
            BECAUSE,
            audit("dead-letters.replay"),
        ),
        case(
            "/console/taxpayers/{taxpayer}/history",
            "/console/taxpayers/{taxpayer}/history/contact-data",
            BECAUSE,
            audit("invoice.show-contact-data"),
        ),
    ]
}

fn contacts_of(taxpayer: i64) -> String {
    format!("contacts WHERE taxpayer_id = {taxpayer}")
}

/// The forms with which admins change accounts, in an order in which each finds what it needs.
pub(super) fn cases_of_accounts(taxpayer: i64) -> Vec<Case> {
    let taxpayer_page = "/console/taxpayers/{id}";
    vec![
        case(
            taxpayer_page,
            "/console/taxpayers/{taxpayer}/contacts/{contact}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            taxpayer_page,
            "/console/taxpayers/{taxpayer}/contacts/{contact}/second-factor/reset",
            BECAUSE,
            audit("second-factor.reset"),
        )
        .after(second_factor("contact", &contacts_of(taxpayer))),
        case(taxpayer_page, "/console/taxpayers/{id}/verify", BECAUSE, audit("taxpayer.verify"))
            .after("UPDATE taxpayers SET verification = 'unverified', verification_reason = 'tin_mismatch'"),
        case(
            taxpayer_page,
            "/console/taxpayers/{id}/subscription",
            "subscription=inactive",
            audit("taxpayer.set-subscription"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{integrator}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{integrator}/second-factor/reset",
            BECAUSE,
            audit("second-factor.reset"),
        )
        .after(second_factor("integrator", "integrators")),
        case(
            "/console/integrators",
            "/console/integrators/{id}/access",
            "reason=gone&move=disable",
            audit("integrator.disable"),
        ),
        case(
            "/console/operators",
            "/console/operators/{operator}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            "/console/operators",
            "/console/operators/{operator}/second-factor/reset",
            BECAUSE,
            audit("second-factor.reset"),
        )
        .after(second_factor("operator", "operators")),
        case(
            "/console/operators",
            "/console/operators/{id}/role",
            "reason=new work&role=viewer",
            audit("operator.change-role"),
        ),
        case(
            "/console/operators",
            "/console/operators/{id}/access",
            "reason=gone&move=disable",
            audit("operator.disable"),
        ),
    ]
}

/// The forms with which a person changes its own account, before and after those of the second factor. The last one
/// ends the session.
pub(super) fn cases_of_oneself() -> [Case; 3] {
    let passwords = format!("present={PASSWORD}&new=four more plain words&again=four more plain words");
    [
        case("/account/sessions", "/account/sessions/end", "", audit("session.end-others")),
        case("/account/password", "/account/password", &passwords, audit("password.change")),
        case("/account/sessions", "/sign-out", "", audit("session.sign-out")),
    ]
}
