//! The settings of the account on the page of its profile: the template and the logo of its documents, and how strict
//! and how automatic the service is.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use serde_json::{Map, Value, json};

use crate::actors::taxpayer::commands::ChangeProfile;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::profile::{self, PageForms};
use crate::console::form_values::{FormState, FormValues, remove_unchanged};
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner, Reader};
use crate::domain::party::settings::AccountSettings;
use crate::http::forms::account_settings::template_names;
use crate::http::forms::{self, reader};
use crate::http::invoice_files;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::logos;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/profile/settings").form(save_settings),
        path("/dashboard/{taxpayer}/profile/logo")
            .form(save_logo)
            .form_takes_file(),
        path("/dashboard/{taxpayer}/profile/picture").page(show_logo),
    ]
}

/// The settings that are on or off, each with the sentence beside its checkbox.
const SWITCHES: [(&str, &str); 4] = [
    (
        "strict_documents",
        "Refuse a document that differs from the stored invoice, instead of warning of it",
    ),
    (
        "strict_numbers",
        "Refuse an invoice number that the authority would not take, instead of warning of it",
    ),
    (
        "submit_after_approval",
        "Submit an invoice to the authority as soon as it is approved",
    ),
    (
        "transmit_after_signing",
        "Transmit an invoice to the customer as soon as the authority has signed it",
    ),
];

/// The section of the profile page that shows the settings, with its two forms.
pub(super) struct SettingsSection {
    pub(super) templates: [&'static str; 2],
    pub(super) switches: [(&'static str, &'static str); 4],
    pub(super) form: FormState,
    pub(super) logo_form: FormState,
    /// The kind and size of the logo; empty if there is none.
    pub(super) logo: String,
}

impl SettingsSection {
    pub(super) fn new(
        settings: &AccountSettings,
        form: Option<FormState>,
        logo_form: Option<FormState>,
    ) -> Self {
        let logo = settings.logo.as_ref().map(|logo| {
            let kind = logo.kind.media_type();
            format!("{kind}, {} bytes", logo.bytes)
        });
        Self {
            templates: template_names(),
            switches: SWITCHES,
            form: form
                .unwrap_or_else(|| FormState::new(form_values(settings).with_original_values())),
            logo_form: logo_form.unwrap_or_default(),
            logo: logo.unwrap_or_default(),
        }
    }
}

fn form_values(settings: &AccountSettings) -> FormValues {
    let accent = settings.accent.unwrap_or_default().to_string();
    let switch_states = [
        settings.strict_documents,
        settings.strict_numbers,
        settings.submit_after_approval,
        settings.transmit_after_signing,
    ];
    let texts = [
        (
            "registration_number",
            settings.registration_number.as_deref().unwrap_or_default(),
        ),
        ("template", settings.template.name()),
        ("colours.accent", &accent),
    ];
    let switches = SWITCHES
        .iter()
        .zip(switch_states)
        .filter(|(_, is_on)| *is_on);
    let switches = switches.map(|((name, _), _)| (*name, "true"));
    texts.into_iter().chain(switches).collect()
}

/// Returns the form as a body of the API. A blank number removes the stored one, and an unchecked box means false.
fn to_api_body(form: &FormValues) -> Map<String, Value> {
    let mut body = form.to_object(&["registration_number", "template"]);
    body.entry("registration_number").or_insert(Value::Null);
    let accent = form.text("colours.accent");
    if !accent.is_empty() {
        body.insert("colours".to_owned(), json!({ "accent": accent }));
    }
    for (name, _) in SWITCHES {
        body.insert(name.to_owned(), json!(form.text(name) == "true"));
    }
    body
}

/// Returns the settings that the person changed on the page. Others may have been changed on another page since.
fn changed_settings(form: &FormValues) -> Map<String, Value> {
    let mut body = to_api_body(form);
    remove_unchanged(&mut body, &to_api_body(&form.original_values()));
    body
}

/// POST of the settings, like PATCH …/profile.
async fn save_settings(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    let saved = save(&state, &session, &changed_settings(&form.0)).await;
    respond_to_save(&state, &session, saved, form.0, |refused| PageForms {
        settings: Some(refused),
        ..PageForms::default()
    })
    .await
}

/// POST of a new logo, or of the request to remove it.
async fn save_logo(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    let is_removed = form.0.text("remove") == "true";
    let logo = form.0.text("logo");
    let body = if is_removed || !logo.is_empty() {
        let logo = if is_removed { Value::Null } else { json!(logo) };
        Map::from_iter([("logo".to_owned(), logo)])
    } else {
        Map::new()
    };
    let saved = save(&state, &session, &body).await;
    // The picture is not shown again, so the form needs no values.
    let values = FormValues::default();
    respond_to_save(&state, &session, saved, values, |refused| PageForms {
        logo: Some(refused),
        ..PageForms::default()
    })
    .await
}

async fn save(
    state: &ApiState,
    session: &AccountSession,
    body: &Map<String, Value>,
) -> Result<(), ApiError> {
    let read = reader::read(body, &state.catalog.get(), forms::profile::read)?;
    invoice_files::check_logo(state, session.taxpayer, &read.value.settings.logo).await?;
    let command = ChangeProfile {
        change: read.value,
        by: session.by,
    };
    session.send(state, command).await?;
    Ok(())
}

/// Redirects to the profile, or shows it with the faults of the form.
async fn respond_to_save(
    state: &ApiState,
    session: &AccountSession,
    saved: Result<(), ApiError>,
    values: FormValues,
    forms: impl FnOnce(FormState) -> PageForms,
) -> Answer {
    match saved {
        Ok(()) => Ok(go_to(
            &format!("{}/profile", base_path(session)),
            "The settings were saved.",
        )),
        Err(error) => {
            let refused = FormState::from_refusal(error, values)?;
            let taxpayer = profile::load_taxpayer(state, session).await?;
            let page = profile::profile_page(session, taxpayer, forms(refused));
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
    }
}

/// GET of the logo, for the preview on the page.
async fn show_logo(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    let taxpayer = profile::load_taxpayer(&state, &session).await?;
    let stored = logos::owned_by(state.store.reader(), session.taxpayer).await?;
    let (logo, bytes) = taxpayer
        .settings
        .logo
        .zip(stored)
        .ok_or_else(ApiError::route_not_found)?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, logo.kind.media_type()))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_all_settings() {
        let form = FormValues::from([
            ("template", "compact"),
            ("colours.accent", "#123456"),
            ("strict_numbers", "true"),
        ]);
        let expected = json!({
            "registration_number": null, "template": "compact", "colours": { "accent": "#123456" },
            "strict_documents": false, "strict_numbers": true, "submit_after_approval": false,
            "transmit_after_signing": false,
        });
        assert_eq!(Value::Object(to_api_body(&form)), expected);
    }

    #[test]
    fn only_what_was_changed_is_sent() {
        type Fields = &'static [(&'static str, &'static str)];
        let stored = AccountSettings {
            registration_number: Some("RC 1".to_owned()),
            strict_documents: true,
            ..AccountSettings::default()
        };
        let cases: [(Fields, &str, Value); 6] = [
            (&[], "", json!({})),
            (
                &[("registration_number", "")],
                "",
                json!({ "registration_number": null }),
            ),
            (&[("registration_number", "RC 1 ")], "", json!({})),
            (
                &[("strict_numbers", "true"), ("template", "compact")],
                "",
                json!({ "strict_numbers": true, "template": "compact" }),
            ),
            (
                &[],
                "strict_documents",
                json!({ "strict_documents": false }),
            ),
            (
                &[("colours.accent", "#aa2200")],
                "strict_documents",
                json!({ "colours": { "accent": "#aa2200" }, "strict_documents": false }),
            ),
        ];
        for (typed, unticked, changes) in cases {
            let unticked = FormValues::from([(unticked, "")]);
            let typed: FormValues = typed.iter().copied().collect();
            let page = form_values(&stored).with_original_values();
            let sent = page.with_fields(unticked).with_fields(typed);
            assert_eq!(Value::Object(changed_settings(&sent)), changes, "{sent:?}");
        }
    }

    #[test]
    fn the_form_shows_what_is_stored() {
        let settings = AccountSettings {
            strict_documents: true,
            ..AccountSettings::default()
        };
        let body = to_api_body(&form_values(&settings));
        assert_eq!(body["strict_documents"], json!(true));
        assert_eq!(body["strict_numbers"], json!(false));
        assert_eq!(body["colours"]["accent"], json!("#0f4c5c"));
    }
}
