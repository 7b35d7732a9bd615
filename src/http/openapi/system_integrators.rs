//! System Integrator API.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};

use crate::http::code::Code;
use crate::http::forms::outline::Outline;
use crate::http::forms::{profile, taxpayer, webhook};
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::parameter::Kind;
use crate::http::views::integration::Integration;
use crate::http::views::secret::{RotatedKey, RotatedSecret};
use crate::http::views::taxpayer::{CreatedTaxpayer, ProfileView, TaxpayerView};
use crate::webhook::AddressPolicy;

pub(super) fn operations() -> Vec<Operation> {
    let own = |operation: Operation| operation.fails(&[Code::TaxpayerNotFound]);
    let all = taxpayers().into_iter().chain(webhooks().into_iter().map(own));
    all.map(|operation| operation.by(Key::Integrator)).collect()
}

fn taxpayers() -> Vec<Operation> {
    vec![
        Operation::new(Get, "/v1/system-integrators/taxpayers", "list_taxpayers", "List Taxpayers")
            .query("search", Kind::Text, "part of a name, TIN or email")
            .query("page", Kind::Lenient, "from 1, the default")
            .query("per_page", Kind::Lenient, "15 by default, 100 at most")
            .gives_page::<TaxpayerView<'_>>("Taxpayers retrieved successfully"),
        Operation::new(Post, "/v1/system-integrators/taxpayers", "create_taxpayer", "Create Taxpayer")
            .takes(Outline::of(taxpayer::read), include_str!("examples/create_taxpayer.json"))
            .gives::<CreatedTaxpayer<'_>>(201, "Taxpayer created successfully"),
        Operation::new(Get, "/v1/system-integrators/taxpayers/{id}", "get_taxpayer", "Get Taxpayer")
            .gives::<TaxpayerView<'_>>(200, "Taxpayer retrieved successfully")
            .fails(&[Code::TaxpayerNotFound]),
        Operation::new(
            Patch,
            "/v1/system-integrators/taxpayers/{id}/profile",
            "update_profile",
            "Complete the business profile",
        )
        .takes(Outline::of(profile::read), include_str!("examples/update_profile.json"))
        .gives::<ProfileView<'_>>(200, "Taxpayer profile updated successfully")
        .fails(&[Code::TaxpayerNotFound]),
    ]
}

fn webhooks() -> Vec<Operation> {
    let webhook = Outline::of(|reader| webhook::read(reader, &AddressPolicy::default()));
    vec![
        Operation::new(
            Get,
            "/v1/system-integrators/taxpayers/{id}/webhook",
            "get_webhook",
            "The integration record",
        )
        .gives::<Integration<'_>>(200, "Webhook retrieved successfully")
        .fails(&[Code::WebhookNotConfigured]),
        Operation::new(
            Put,
            "/v1/system-integrators/taxpayers/{id}/webhook",
            "update_webhook",
            "Update Webhook",
        )
        .also([Patch, Post])
        .takes(webhook, include_str!("examples/update_webhook.json"))
        .gives::<Integration<'_>>(200, "Webhook updated successfully"),
        Operation::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/webhook/secret",
            "rotate_webhook_secret",
            "A new signing secret",
        )
        .gives::<RotatedSecret<'_>>(200, "Webhook secret rotated successfully")
        .fails(&[Code::WebhookNotConfigured]),
        Operation::new(
            Post,
            "/v1/system-integrators/taxpayers/{id}/api-key/rotate",
            "rotate_api_key",
            "Rotate Taxpayer API Key",
        )
        .also([Put, Patch])
        .gives::<RotatedKey<'_>>(200, "API key rotated successfully"),
    ]
}
