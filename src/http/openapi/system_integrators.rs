//! System Integrator API.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};

use crate::http::forms::form_schema::FormSchema;
use crate::http::forms::profile;
use crate::http::forms::replay;
use crate::http::forms::taxpayer;
use crate::http::forms::webhook;
use crate::http::openapi::operation::{OperationDoc, RequiredKey};
use crate::http::openapi::parameter::QueryKind;
use crate::http::openapi::schema;
use crate::http::respond::code::ErrorCode;
use crate::http::views::audit::IntegratorAuditView;
use crate::http::views::delivery::DeliveryView;
use crate::http::views::integration::Integration;
use crate::http::views::replay::{Enabled, ReplayView};
use crate::http::views::secret::{RotatedKey, RotatedSecret};
use crate::http::views::taxpayer::{CreatedTaxpayer, ProfileView, TaxpayerView};
use crate::webhook::AddressPolicy;

pub(super) fn operations() -> Vec<OperationDoc> {
    let own = |operation: OperationDoc| operation.fails(&[ErrorCode::TaxpayerNotFound]);
    let of_one = taxpayer().into_iter().chain(webhooks()).chain(replays()).chain(deliveries());
    let all = taxpayers().into_iter().chain(of_one.map(own));
    all.map(|operation| operation.by(RequiredKey::Integrator)).collect()
}

fn taxpayers() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(Get, "/v1/system-integrators/taxpayers", "list_taxpayers", "List Taxpayers")
            .query("search", QueryKind::Text, "part of a name, TIN or email")
            .query("page", QueryKind::Lenient, "from 1, the default")
            .query("per_page", QueryKind::Lenient, "15 by default, 100 at most")
            .gives_page::<TaxpayerView<'_>>("Taxpayers retrieved successfully"),
        OperationDoc::new(Post, "/v1/system-integrators/taxpayers", "create_taxpayer", "Create Taxpayer")
            .takes(FormSchema::of(taxpayer::read), include_str!("examples/create_taxpayer.json"))
            .gives::<CreatedTaxpayer<'_>>(201, "Taxpayer created successfully")
            .writes(),
        OperationDoc::new(
            Get,
            "/v1/system-integrators/audit",
            "list_own_audit",
            "Your security changes and those of your account, newest first",
        )
        .noted(
            "New taxpayers, profiles, keys, webhook URLs and secrets, each with its actor; never a secret.",
        )
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "15 by default, 100 at most")
        .query("taxpayer_id", QueryKind::Text, "of one taxpayer")
        .query("subject", QueryKind::Text, "a taxpayer or your account, by its id")
        .gives_page::<IntegratorAuditView<'_>>("Audit retrieved successfully"),
    ]
}

fn taxpayer() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(Get, "/v1/system-integrators/taxpayers/{id}", "get_taxpayer", "Get Taxpayer")
            .gives::<TaxpayerView<'_>>(200, "Taxpayer retrieved successfully"),
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/integration/setup",
            "get_integration_setup",
            "The taxpayer, for setting its integration up",
        )
        .gives::<TaxpayerView<'_>>(200, "Taxpayer retrieved successfully"),
        OperationDoc::new(
            Patch,
            "/v1/system-integrators/taxpayers/{id}/profile",
            "update_profile",
            "Complete the business profile",
        )
        .takes(FormSchema::of(profile::read), include_str!("examples/update_profile.json"))
        .gives::<ProfileView<'_>>(200, "Taxpayer profile updated successfully")
        .writes(),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/api-key/rotate",
            "rotate_api_key",
            "Rotate Taxpayer API Key",
        )
        .also([Put, Patch])
        .noted("The old key is refused at once, or after `overlap_s`; a key that is replaced again keeps its end.")
        .query("overlap_s", QueryKind::Text, "how long the old key stays valid, in seconds: 604800 at most, 0 by default")
        .query("scope", QueryKind::Text, "full or read_only; by default that of the old key")
        .query("expires_at", QueryKind::Text, "when the new key ends, as RFC 3339 writes it; never by default")
        .gives::<RotatedKey<'_>>(200, "API key rotated successfully")
        .fails(&[ErrorCode::ValidationFailed])
        .writes(),
    ]
}

fn webhooks() -> Vec<OperationDoc> {
    let webhook_form = FormSchema::of(|reader| webhook::read(reader, &AddressPolicy::default()));
    vec![
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook",
            "get_webhook",
            "The integration record",
        )
        .gives::<Integration<'_>>(200, "Webhook retrieved successfully")
        .fails(&[ErrorCode::WebhookNotConfigured]),
        OperationDoc::new(
            Put,
            "/v1/system-integrators/taxpayers/{id}/webhook",
            "update_webhook",
            "Update Webhook",
        )
        .also([Patch, Post])
        .takes(webhook_form, include_str!("examples/update_webhook.json"))
        .gives::<Integration<'_>>(200, "Webhook updated successfully")
        .writes(),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/test",
            "test_webhook",
            "Test Webhook: data is whatever the endpoint answered",
        )
        .also([Get])
        .noted(
            "With `grade=true` a battery of messages is sent instead, right ones and wrong ones, one after the other and \
             within a minute. Data is then a grade from A to F, a score of 100, and a check for each message: \
             name, passed, sent, expected, status, duration_ms, explanation.",
        )
        .query("grade", QueryKind::Text, "true for a grade of the endpoint")
        .shows(200, "Connection test successful! Response code: <status>", schema::envelope(schema::any()))
        .shows(200, "Webhook graded <grade>: <score> of 100 points", schema::envelope(schema::any()))
        .fails(&[ErrorCode::WebhookNotConfigured, ErrorCode::WebhookUnreachable, ErrorCode::ValidationFailed]),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/secret",
            "rotate_webhook_secret",
            "A new signing secret, or the public key of a new key pair",
        )
        .may_take(FormSchema::of(webhook::read_secret), include_str!("examples/rotate_webhook_secret.json"))
        .gives::<RotatedSecret<'_>>(200, "Webhook secret rotated successfully")
        .writes()
        .fails(&[ErrorCode::WebhookNotConfigured]),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/enable",
            "enable_webhook",
            "Put the webhook back into service",
        )
        .may_take(FormSchema::of(replay::read_enable), include_str!("examples/enable_webhook.json"))
        .gives::<Enabled<'_>>(200, "Webhook enabled successfully")
        .writes()
        .fails(&[ErrorCode::WebhookNotConfigured, ErrorCode::InvalidTransition]),
    ]
}

/// Durable redelivery, and the log of deliveries.
fn deliveries() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/replay",
            "replay_webhook",
            "Deliver again what failed, what is missing, or all",
        )
        .takes(FormSchema::of(replay::read), include_str!("examples/replay_webhooks.json"))
        .gives::<ReplayView>(200, "Webhook replay started successfully")
        .writes()
        .fails(&[ErrorCode::WebhookNotConfigured, ErrorCode::InvalidTransition]),
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook/replay",
            "get_replay",
            "How far the latest replay is; null before the first",
        )
        .gives_or_null::<ReplayView>(200, "Webhook replay retrieved successfully")
        .fails(&[ErrorCode::WebhookNotConfigured]),
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook/deliveries",
            "list_deliveries",
            "The log of deliveries, newest first",
        )
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "15 by default, 100 at most")
        .query("state", QueryKind::Text, "pending, delivered or dead")
        .query("event", QueryKind::Text, "the name of an event")
        .query("irn", QueryKind::Text, "the IRN of an invoice")
        .query("since", QueryKind::Text, "a sequence, or a moment as RFC 3339 writes it")
        .gives_page::<DeliveryView<'_>>("Webhook deliveries retrieved successfully")
        .fails(&[ErrorCode::ValidationFailed]),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay",
            "replay_delivery",
            "Deliver one event again",
        )
        .gives::<ReplayView>(200, "Webhook delivery queued successfully")
        .writes()
        .fails(&[
            ErrorCode::DeliveryNotFound,
            ErrorCode::WebhookNotConfigured,
            ErrorCode::InvalidTransition,
        ]),
    ]
}

/// Requested replays and their progress.
fn replays() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook/replays",
            "list_replays",
            "Every replay with its progress, newest first",
        )
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "15 by default, 100 at most")
        .gives_page::<ReplayView>("Webhook replays retrieved successfully"),
        OperationDoc::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}",
            "find_replay",
            "How far a replay is",
        )
        .gives::<ReplayView>(200, "Webhook replay retrieved successfully")
        .fails(&[ErrorCode::ReplayNotFound]),
        OperationDoc::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}/cancel",
            "cancel_replay",
            "End a replay: what it has queued is delivered, nothing more is",
        )
        .gives::<ReplayView>(200, "Webhook replay cancelled successfully")
        .writes()
        .fails(&[ErrorCode::ReplayNotFound, ErrorCode::InvalidTransition]),
    ]
}
