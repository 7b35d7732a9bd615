//! The business profile: the data of the taxpayer that the service and the authority have, the missing data, and a form
//! for the fields that the owner may change. The settings on the same page are in `settings`.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use serde_json::Value;

use crate::actors::taxpayer::commands::ChangeProfile;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::settings::SettingsSection;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues, remove_unchanged};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner, Reader};
use crate::domain::party::verification::{UnverifiedReason, Verification};
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::http::forms::{profile, reader};
use crate::http::onboarding;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/profile")
            .page(show_profile)
            .form(save_profile),
    ]
}

/// The fields of the form, with the names of the API.
const FIELDS: [&str; 8] = [
    "name",
    "business_email",
    "phone",
    "nature_of_business",
    "address",
    "city",
    "state",
    "country",
];

/// The fields whose value is removed if it is blanked. A profile needs the others.
const REMOVABLE_FIELDS: [&str; 2] = ["phone", "nature_of_business"];

#[derive(Template)]
#[template(path = "accounts/profile.html")]
struct ProfilePage {
    frame: Frame,
    base: String,
    taxpayer: Taxpayer,
    completeness: ProfileCompleteness,
    subscription: Badge,
    verification: Badge,
    verification_note: &'static str,
    settings: SettingsSection,
    form: FormState,
}

/// The completeness of a profile: how many of the wanted fields are filled, and which are missing.
pub(super) struct ProfileCompleteness {
    pub(super) filled: usize,
    pub(super) wanted: usize,
    pub(super) missing: Vec<MissingField>,
}

pub(super) struct MissingField {
    pub(super) label: &'static str,
    pub(super) reason: &'static str,
}

/// The number of fields that a complete profile has (spec.md, "Taxpayer API").
const FIELD_COUNT: usize = 6;

impl ProfileCompleteness {
    pub(super) fn from_taxpayer(taxpayer: &Taxpayer) -> Self {
        let missing: Vec<_> = taxpayer
            .missing_profile_fields()
            .into_iter()
            .map(MissingField::from_field)
            .collect();
        Self {
            filled: FIELD_COUNT.saturating_sub(missing.len()),
            wanted: FIELD_COUNT,
            missing,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl MissingField {
    fn from_field(field: &str) -> Self {
        let (label, reason) = match field {
            "city" => (
                "City",
                "The authority wants the seller's whole address on each invoice.",
            ),
            "state" => (
                "State",
                "The authority wants the seller's whole address on each invoice.",
            ),
            "country" => (
                "Country",
                "The authority wants the seller's whole address on each invoice.",
            ),
            "business_email" => (
                "Business email",
                "The authority writes to it, and customers see it.",
            ),
            "authority_business_id" => ("Business id", "The authority knows the business by it."),
            _ => ("Service id", "It is a part of each invoice's IRN."),
        };
        Self { label, reason }
    }
}

async fn show_profile(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    let taxpayer = load_taxpayer(&state, &session).await?;
    show(&profile_page(&session, taxpayer, PageForms::default()))
}

/// POST of the form: changes the profile, like PATCH …/profile. Only fields that the person changed are sent; null
/// removes a value.
async fn save_profile(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    let before = form.0.original_values().to_object(&FIELDS);
    let mut body = form.0.to_object(&FIELDS);
    let blanked = REMOVABLE_FIELDS.into_iter().filter(|name| {
        let is_sent = form.0.checked_values(name).next().is_some();
        is_sent && before.contains_key(*name) && !body.contains_key(*name)
    });
    let removed: Vec<_> = blanked.map(|name| (name.to_owned(), Value::Null)).collect();
    remove_unchanged(&mut body, &before);
    body.extend(removed);
    let page = format!("{}/profile", base_path(&session));
    if body.is_empty() {
        return Ok(go_to(&page, "Nothing was changed."));
    }
    let changed = match reader::read(&body, &state.catalog.get(), profile::read) {
        Ok(read) => {
            let sent = change_profile(&state, &session, read.value).await;
            sent.map(|()| read.warnings)
        }
        Err(faults) => Err(faults.into()),
    };
    match changed {
        Ok(warnings) => {
            let notes = warnings.iter();
            let notes: Vec<_> = notes.map(|warning| format!(" Note: {warning}.")).collect();
            Ok(go_to(
                &page,
                &format!("The profile was changed.{}", notes.concat()),
            ))
        }
        Err(error) => {
            let refused = FormState::from_refusal(error, form.0)?;
            let taxpayer = load_taxpayer(&state, &session).await?;
            let forms = PageForms {
                profile: Some(refused),
                ..PageForms::default()
            };
            show_with_status(
                StatusCode::UNPROCESSABLE_ENTITY,
                &profile_page(&session, taxpayer, forms),
            )
        }
    }
}

async fn change_profile(
    state: &ApiState,
    session: &AccountSession,
    change: ProfileChange,
) -> Result<(), ApiError> {
    let taxpayer = load_taxpayer(state, session).await?;
    let counted = onboarding::integrator_with_email_limit(&taxpayer, &change);
    let by = session.by;
    let changed = async {
        let sent = session.send(state, ChangeProfile { change, by }).await;
        sent.map(drop).map_err(ApiError::from)
    };
    onboarding::change_counting_taken_email(state, counted, changed).await
}

/// Loads the taxpayer of the session.
pub(super) async fn load_taxpayer(
    state: &ApiState,
    session: &AccountSession,
) -> Result<Taxpayer, ApiError> {
    let found = taxpayers::find_by_id(state.store.reader(), session.taxpayer).await?;
    found.ok_or_else(ApiError::taxpayer_not_found)
}

/// The forms of the page after a refused attempt. A form that is `None` shows the stored values.
#[derive(Default)]
pub(super) struct PageForms {
    pub(super) profile: Option<FormState>,
    pub(super) settings: Option<FormState>,
    pub(super) logo: Option<FormState>,
}

pub(super) fn profile_page(
    session: &AccountSession,
    taxpayer: Taxpayer,
    forms: PageForms,
) -> impl Template {
    ProfilePage {
        form: forms
            .profile
            .unwrap_or_else(|| FormState::new(form_values(&taxpayer).with_original_values())),
        settings: SettingsSection::new(&taxpayer.settings, forms.settings, forms.logo),
        frame: Frame::for_account(session, "Profile"),
        base: base_path(session),
        completeness: ProfileCompleteness::from_taxpayer(&taxpayer),
        subscription: taxpayer.subscription.into(),
        verification: taxpayer.verification.status().into(),
        verification_note: verification_note(taxpayer.verification),
        taxpayer,
    }
}

fn form_values(taxpayer: &Taxpayer) -> FormValues {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let place = &taxpayer.place;
    FormValues::from([
        ("name", taxpayer.name.as_str()),
        ("business_email", &taxpayer.email),
        ("phone", &text(&taxpayer.phone)),
        ("nature_of_business", &text(&taxpayer.nature_of_business)),
        ("address", &taxpayer.address),
        ("city", &text(&place.city)),
        ("state", &text(&place.state)),
        ("country", &text(&place.country)),
    ])
}

/// Says what the verification means for the owner of the account.
pub(super) fn verification_note(verification: Verification) -> &'static str {
    match verification {
        Verification::Pending => "The authority is being asked whether it knows this business.",
        Verification::Verified(_) => "The business id and the TIN belong together.",
        Verification::Unverified(UnverifiedReason::TinMismatch) => {
            "The authority knows the business id with another TIN. Ask the operator of this service."
        }
        Verification::Unverified(UnverifiedReason::BusinessUnknown) => {
            "The authority does not know the business id. Register with the authority, or ask the operator."
        }
        Verification::Unverified(UnverifiedReason::NoAnswer) => {
            "The authority did not answer yet. It is asked again by itself."
        }
    }
}
