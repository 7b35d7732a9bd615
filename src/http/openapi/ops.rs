//! Health, metrics, and the operations for operators.

use utoipa::openapi::path::HttpMethod::{Get, Post, Put};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder};

use crate::http::forms::dead_letters;
use crate::http::forms::form_schema::FormSchema;
use crate::http::forms::integration;
use crate::http::forms::key_terms;
use crate::http::forms::reason;
use crate::http::forms::reconciliation;
use crate::http::metrics::CONTENT_TYPE;
use crate::http::openapi::operation::{OperationDoc, RequiredKey};
use crate::http::openapi::parameter::QueryKind;
use crate::http::openapi::schema;
use crate::http::respond::code::ErrorCode;
use crate::http::views::account::{AccountView, NewApiKey, RevokedKeys};
use crate::http::views::audit::AuditView;
use crate::http::views::breaker::Breaker;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::erp_settings::ErpSettings;
use crate::http::views::operated_run::{OperatedRun, OperatedRunWithSteps};
use crate::http::views::outage::OutageView;
use crate::http::views::reconciliation::{ReconciliationView, ReconciliationWithFindings};
use crate::http::views::replay::ReplayView;
use crate::http::views::taxpayer::{OperatedTaxpayer, TaxpayerView};
use crate::webhook::AddressPolicy;

pub(super) fn operations() -> Vec<OperationDoc> {
    let operated = [supervision()].into_iter().chain(runs()).chain(deliveries()).chain(taxpayers());
    let operated = operated.chain(accounts()).chain(reconciliations()).chain(records());
    probes().into_iter().chain(operated.map(|operation| operation.by(RequiredKey::Operator))).collect()
}

fn probes() -> Vec<OperationDoc> {
    let object = || ObjectBuilder::new().build().into();
    vec![
        OperationDoc::new(Get, "/health/live", "live", "The process answers").shows(200, "ok", object()),
        OperationDoc::new(Get, "/health/ready", "ready", "The service may be sent requests")
            .shows(200, "ready", object())
            .shows(503, "not ready", object()),
        OperationDoc::new(Get, "/metrics", "metrics", "Metrics, in the text format of Prometheus")
            .noted("With `metrics.public = false` in the settings an operator's key is asked for.")
            .shows_text(200, "metrics", CONTENT_TYPE)
            .fails(&[ErrorCode::Unauthenticated, ErrorCode::InvalidApiKey]),
        OperationDoc::new(Get, "/openapi.json", "openapi", "This document").shows(
            200,
            "OpenAPI 3.1",
            object(),
        ),
    ]
}

fn supervision() -> OperationDoc {
    let tree = schema::envelope(ObjectBuilder::new());
    OperationDoc::new(Get, "/ops/supervision", "supervision", "The tree of actors, gravest first").shows(
        200,
        "Supervision retrieved successfully",
        tree,
    )
}

fn paged(operation: OperationDoc) -> OperationDoc {
    let operation = operation.query("page", QueryKind::Lenient, "from 1, the default");
    operation.query("per_page", QueryKind::Lenient, "100 at most")
}

fn runs() -> Vec<OperationDoc> {
    let moves = [
        ("/ops/pipeline/runs/{id}/pause", "pause_run", "Hold a run"),
        ("/ops/pipeline/runs/{id}/resume", "resume_run", "Let a run that was held go on"),
        (
            "/ops/pipeline/runs/{id}/retry",
            "retry_run",
            "Let a run go on now, and from its start if it has ended",
        ),
        ("/ops/pipeline/runs/{id}/cancel", "cancel_run", "End a run that has taken no effect"),
    ];
    let operated = moves.map(|(path, name, summary)| {
        OperationDoc::new(Post, path, name, summary)
            .may_take(FormSchema::of(reason::read), include_str!("examples/reason.json"))
            .gives::<OperatedRunWithSteps<'_>>(
                200,
                "Pipeline run paused, resumed, queued or cancelled successfully",
            )
            .fails(&[ErrorCode::RunNotFound, ErrorCode::InvalidTransition])
            .fails(&[ErrorCode::InvoiceLocked, ErrorCode::InvoiceNotApproved, ErrorCode::IrnContentChanged])
    });
    let list = OperationDoc::new(
        Get,
        "/ops/pipeline/runs",
        "list_runs",
        "Pipeline runs of all taxpayers, newest first",
    )
    .query("state", QueryKind::Text, "running, waiting, paused, succeeded, refused or cancelled")
    .query("operation", QueryKind::Text, "submit, transmit, report or update-payment-status")
    .query("taxpayer_id", QueryKind::Text, "of one taxpayer")
    .gives_page::<OperatedRun<'_>>("Pipeline runs retrieved successfully")
    .fails(&[ErrorCode::ValidationFailed]);
    let one = OperationDoc::new(
        Get,
        "/ops/pipeline/runs/{id}",
        "get_operated_run",
        "A pipeline run with its steps",
    )
    .gives::<OperatedRunWithSteps<'_>>(200, "Pipeline run retrieved successfully")
    .fails(&[ErrorCode::RunNotFound]);
    [paged(list), one].into_iter().chain(operated).collect()
}

fn deliveries() -> Vec<OperationDoc> {
    let list = OperationDoc::new(
        Get,
        "/ops/webhooks/dead-letters",
        "list_dead_letters",
        "Deliveries that were given up",
    )
    .query("taxpayer_id", QueryKind::Text, "of one taxpayer")
    .gives_page::<DeadLetter<'_>>("Dead letters retrieved successfully");
    let path = "/ops/webhooks/dead-letters/{id}/replay";
    let replay = OperationDoc::new(Post, path, "replay_dead_letter", "Deliver one of them again")
        .may_take(FormSchema::of(reason::read), include_str!("examples/reason.json"))
        .gives::<ReplayView>(200, "Webhook delivery queued successfully")
        .fails(&[ErrorCode::DeliveryNotFound, ErrorCode::WebhookNotConfigured, ErrorCode::InvalidTransition]);
    let path = "/ops/webhooks/dead-letters/replay";
    let many = OperationDoc::new(Post, path, "replay_dead_letters", "Deliver those of a taxpayer again")
        .takes(FormSchema::of(dead_letters::read), include_str!("examples/replay_dead_letters.json"))
        .gives::<ReplayView>(200, "Webhook replay started successfully")
        .fails(&[ErrorCode::TaxpayerNotFound, ErrorCode::WebhookNotConfigured, ErrorCode::InvalidTransition]);
    vec![paged(list), replay, many]
}

/// Verification of taxpayers, and their ERP notification settings.
fn taxpayers() -> Vec<OperationDoc> {
    let list = OperationDoc::new(
        Get,
        "/ops/taxpayers",
        "list_all_taxpayers",
        "Taxpayers of all integrators, newest first",
    )
    .query("verification", QueryKind::Text, "pending, verified or unverified")
    .query("tin", QueryKind::Text, "a tax number, in whichever spelling")
    .gives_page::<OperatedTaxpayer<'_>>("Taxpayers retrieved successfully")
    .fails(&[ErrorCode::ValidationFailed]);
    let path = "/ops/taxpayers/{id}/verify";
    let verify = OperationDoc::new(
        Post,
        path,
        "verify_taxpayer",
        "Confirm who a taxpayer is, in the authority's place",
    )
    .takes(FormSchema::of(reason::read_required), include_str!("examples/reason.json"))
    .gives::<TaxpayerView<'_>>(200, "Taxpayer verified successfully")
    .fails(&[ErrorCode::TaxpayerNotFound]);
    [paged(list), verify].into_iter().chain(integrations()).collect()
}

fn integrations() -> Vec<OperationDoc> {
    let path = "/ops/taxpayers/{id}/integration";
    let form = FormSchema::of(|reader| integration::read(reader, &AddressPolicy::default(), &[]));
    let get = OperationDoc::new(Get, path, "get_integration", "How a taxpayer's ERP takes notifications")
        .gives::<ErpSettings>(200, "Integration retrieved successfully")
        .fails(&[ErrorCode::TaxpayerNotFound]);
    let set = OperationDoc::new(Put, path, "set_integration", "Set how a taxpayer's ERP takes notifications")
        .noted(
            "Secrets are never shown; one that is left out stays, while auth_type, the origin and the token endpoint do. \
             Credentials are sent to `origin` alone: the one in the body, else that of the webhook's URL at this moment.",
        )
        .takes(form, include_str!("examples/set_integration.json"))
        .gives::<ErpSettings>(200, "Integration updated successfully")
        .fails(&[ErrorCode::TaxpayerNotFound]);
    vec![get, set]
}

/// Integrators and operators, and their keys.
fn accounts() -> Vec<OperationDoc> {
    let list = |path, name, summary, message| {
        paged(OperationDoc::new(Get, path, name, summary).gives_page::<AccountView<'_>>(message))
    };
    let rotate = |path, name, summary, missing| {
        OperationDoc::new(Post, path, name, summary)
            .noted("The new key is shown only here. Keys that it replaces end at once, or after `overlap_s`.")
            .may_take(FormSchema::of(key_terms::read), include_str!("examples/rotate_account_key.json"))
            .gives::<NewApiKey<'_>>(200, "API key rotated successfully")
            .fails(&[missing])
    };
    let revoke = |path, name, summary, missing| {
        OperationDoc::new(Post, path, name, summary)
            .noted("With `taxpayer_keys` an integrator's taxpayers lose theirs too.")
            .may_take(FormSchema::of(key_terms::read_revocation), include_str!("examples/revoke_keys.json"))
            .gives::<RevokedKeys>(200, "API keys revoked successfully")
            .fails(&[missing])
    };
    let (integrator, operator) = (ErrorCode::IntegratorNotFound, ErrorCode::OperatorNotFound);
    vec![
        list(
            "/ops/integrators",
            "list_integrators",
            "Integrators with their keys",
            "Integrators retrieved successfully",
        ),
        rotate(
            "/ops/integrators/{id}/api-key/rotate",
            "rotate_integrator_key",
            "Give an integrator a new key",
            integrator,
        ),
        revoke(
            "/ops/integrators/{id}/api-key/revoke",
            "revoke_integrator_keys",
            "Take an integrator's keys back",
            integrator,
        ),
        list(
            "/ops/operators",
            "list_operators",
            "Operators with their keys",
            "Operators retrieved successfully",
        ),
        rotate(
            "/ops/operators/{id}/api-key/rotate",
            "rotate_operator_key",
            "Give an operator a new key",
            operator,
        ),
        revoke(
            "/ops/operators/{id}/api-key/revoke",
            "revoke_operator_keys",
            "Take an operator's keys back",
            operator,
        ),
    ]
}

fn reconciliations() -> Vec<OperationDoc> {
    let path = "/ops/reconciliations";
    let create = OperationDoc::new(
        Post,
        path,
        "create_reconciliation",
        "Compare a taxpayer's day with the authority's ledger",
    )
    .noted("Waits for its end as Submit does; `Prefer: respond-async` does not.")
    .takes(FormSchema::of(reconciliation::read), include_str!("examples/create_reconciliation.json"))
    .gives::<ReconciliationWithFindings<'_>>(200, "Reconciliation ended")
    .gives::<ReconciliationWithFindings<'_>>(202, "Reconciliation queued successfully")
    .fails(&[ErrorCode::TaxpayerNotFound]);
    let list = OperationDoc::new(Get, path, "list_reconciliations", "What was compared, newest first")
        .query("taxpayer_id", QueryKind::Text, "of one taxpayer")
        .query("day", QueryKind::Text, "of one day, as YYYY-MM-DD")
        .gives_page::<ReconciliationView<'_>>("Reconciliations retrieved successfully")
        .fails(&[ErrorCode::ValidationFailed]);
    let one = OperationDoc::new(
        Get,
        "/ops/reconciliations/{id}",
        "get_reconciliation",
        "One of them, with what it found",
    )
    .gives::<ReconciliationWithFindings<'_>>(200, "Reconciliation retrieved successfully")
    .fails(&[ErrorCode::ReconciliationNotFound]);
    vec![create, paged(list), paged(one)]
}

fn records() -> Vec<OperationDoc> {
    let mut breakers = OperationDoc::new(
        Get,
        "/ops/breakers",
        "breakers",
        "The breaker and the limit of each call to the authority",
    );
    let all = ArrayBuilder::new().items(breakers.refer::<Breaker>());
    let audit = OperationDoc::new(
        Get,
        "/ops/audit",
        "list_audit",
        "Security changes and operator actions, newest first",
    )
    .noted("The actor is an operator, an integrator or the command line.")
    .query("taxpayer_id", QueryKind::Text, "of one taxpayer")
    .query("integrator_id", QueryKind::Text, "those that an integrator may read")
    .query("actor", QueryKind::Text, "operator, integrator or command-line")
    .query(
        "subject",
        QueryKind::Text,
        "a run, a delivery, a reconciliation, a taxpayer, an integrator or an operator, by its id",
    )
    .gives_page::<AuditView<'_>>("Audit retrieved successfully")
    .fails(&[ErrorCode::ValidationFailed]);
    let outages =
        OperationDoc::new(Get, "/ops/outages", "list_outages", "Outages of the authority, newest first")
            .gives_page::<OutageView<'_>>("Outages retrieved successfully");
    let breakers = breakers.shows(200, "Breakers retrieved successfully", schema::envelope(all));
    vec![breakers, paged(outages), paged(audit)]
}
