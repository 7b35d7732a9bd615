//! The API keys of a taxpayer: a list, a new key, which is shown once, and the revocation of one.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{RevokeKey, RotateKey};
use crate::console::accounts::navigation::base_path;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::Confirmed;
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::access::api_key::{ApiKey, KeyScope, KeyTerms, NewKey};
use crate::domain::access::caller::KeyKind;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::http::forms::{key_terms, reader};
use crate::http::key_generation;
use crate::http::limits::{self, SensitiveOperation};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::keys;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/keys")
            .page(show_keys)
            .form(create_additional_key),
        path("/dashboard/{taxpayer}/keys/rotate").form(rotate_keys),
        path("/dashboard/{taxpayer}/keys/{key}/revoke").form(revoke_key),
    ]
}

const DAY_S: i64 = 86_400;

#[derive(Template)]
#[template(path = "accounts/keys.html")]
struct KeysPage {
    frame: Frame,
    base: String,
    keys: Vec<KeyLine>,
    /// The valid key that was used last, with the time; `None` if there is no valid key.
    in_use: Option<(String, Option<Timestamp>)>,
    may_create: bool,
    keys_max: usize,
    forms: KeyForms,
    /// The faults of the forms, each as its field and its message.
    faults: Vec<(String, String)>,
}

/// The forms of the page: empty, or with the values and faults of a refused attempt.
#[derive(Default)]
struct KeyForms {
    create: FormState,
    replace: FormState,
}

struct KeyLine {
    key: ApiKey,
    label: String,
    scope: &'static str,
    badge: Badge,
    is_valid: bool,
}

impl KeyLine {
    fn new(key: ApiKey, now: Timestamp) -> Self {
        let scope = match key.scope {
            KeyScope::Full => "Everything",
            KeyScope::ReadOnly => "Read-only",
        };
        let (class, text) = match key.expires_at {
            None => ("ok", "Valid"),
            Some(end) if end > now => ("wait", "Valid until it expires"),
            Some(_) => ("idle", "Expired"),
        };
        let is_valid = key.is_valid(now);
        Self {
            label: key.label(),
            key,
            scope,
            badge: Badge { class, text },
            is_valid,
        }
    }
}

/// The only page that shows a new key.
#[derive(Template)]
#[template(path = "accounts/new_key.html")]
struct NewKeyPage {
    frame: Frame,
    base: String,
    /// Scheme and host of this service, as the browser sees them.
    origin: String,
    key: String,
}

async fn show_keys(state: web::Data<ApiState>, Owner(session): Owner) -> Answer {
    render(&state, &session, KeyForms::default()).await
}

async fn render(state: &ApiState, session: &AccountSession, forms: KeyForms) -> Answer {
    let now = state.now();
    let keys = load_keys(state, session.taxpayer).await?;
    let valid = keys.iter().filter(|key| key.is_valid(now));
    let keys_max = state.settings.keys_per_taxpayer_max;
    let all_forms = [&forms.create, &forms.replace];
    let faults: Vec<_> = all_forms.iter().flat_map(|form| form.summary()).collect();
    let status = if faults.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let page = KeysPage {
        frame: Frame::for_account(session, "API keys"),
        base: base_path(session),
        in_use: valid
            .clone()
            .max_by_key(|key| key.last_used_at)
            .map(|key| (key.label(), key.last_used_at)),
        may_create: valid.count() < keys_max,
        keys_max,
        keys: keys.into_iter().map(|key| KeyLine::new(key, now)).collect(),
        forms,
        faults,
    };
    show_with_status(status, &page)
}

/// Returns the keys of a taxpayer, newest first.
pub(super) async fn load_keys(
    state: &ApiState,
    taxpayer: TaxpayerId,
) -> Result<Vec<ApiKey>, StoreError> {
    let mut found = keys::owned_by_accounts(&state.store, KeyKind::Taxpayer, &[taxpayer.0]).await?;
    Ok(found.remove(&taxpayer.0).unwrap_or_default())
}

/// POST of the form for a new key beside the others: creates it and shows it.
async fn create_additional_key(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Owner(session)): Confirmed<Owner>,
    form: Form<FormValues>,
) -> Answer {
    match create_key(&state, &session, &form.0).await {
        Ok(key) => show_new_key(&state, &request, &session, &key),
        Err(error) => {
            let forms = KeyForms {
                create: FormState::from_refusal(error, form.0)?,
                ..KeyForms::default()
            };
            render(&state, &session, forms).await
        }
    }
}

async fn create_key(
    state: &ApiState,
    session: &AccountSession,
    form: &FormValues,
) -> Result<SecretString, ApiError> {
    let now = state.now();
    let keys = load_keys(state, session.taxpayer).await?;
    let keys_max = state.settings.keys_per_taxpayer_max;
    if keys.iter().filter(|key| key.is_valid(now)).count() >= keys_max {
        return Err(Refusal::TooManyKeys(keys_max).into());
    }
    create_or_replace_key(state, session, form, true).await
}

/// POST of the form for a key that replaces the others, as the API call Rotate Taxpayer API Key does.
async fn rotate_keys(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Owner(session)): Confirmed<Owner>,
    form: Form<FormValues>,
) -> Answer {
    match create_or_replace_key(&state, &session, &form.0, false).await {
        Ok(key) => show_new_key(&state, &request, &session, &key),
        Err(error) => {
            let forms = KeyForms {
                replace: FormState::from_refusal(error, form.0)?,
                ..KeyForms::default()
            };
            render(&state, &session, forms).await
        }
    }
}

/// Creates the key that the form describes. Returns its text.
async fn create_or_replace_key(
    state: &ApiState,
    session: &AccountSession,
    form: &FormValues,
    keeps_others: bool,
) -> Result<SecretString, ApiError> {
    let now = state.now();
    let taxpayer = session.taxpayer;
    let rotation = reader::read(
        &to_api_body(form, now),
        &state.catalog.get(),
        key_terms::read_rotation,
    )?
    .value;
    let terms = KeyTerms {
        keeps_others,
        ..rotation.terms
    };
    key_terms::check_expiry(&terms, now)?;
    state
        .limits
        .count_sensitive_operation(SensitiveOperation::Rotation, taxpayer, now)
        .map_err(limits::limit_error)?;
    let text = key_generation::generate_key(KeyKind::Taxpayer)?;
    let new = NewKey::new(text.clone(), terms).with_name(rotation.name);
    session
        .send(
            state,
            RotateKey {
                key: new,
                keys_max: keeps_others.then_some(state.settings.keys_per_taxpayer_max),
                by: session.by,
            },
        )
        .await?;
    Ok(text)
}

fn show_new_key(
    state: &ApiState,
    request: &HttpRequest,
    session: &AccountSession,
    key: &SecretString,
) -> Answer {
    show(&NewKeyPage {
        frame: Frame::for_account(session, "Your new API key"),
        base: base_path(session),
        origin: state.origin(request).unwrap_or_default(),
        key: key.expose_secret().to_owned(),
    })
}

/// Returns the form as a body of the API. The form has the number of days until the key expires; the body has the time.
fn to_api_body(values: &FormValues, now: Timestamp) -> Map<String, Value> {
    let mut body = values.to_object(&["name", "scope"]);
    let number = |name: &str| match values.text(name).parse::<i64>() {
        Ok(number) => Some(Value::from(number)),
        Err(_) => Some(values.text(name))
            .filter(|text| !text.is_empty())
            .map(Value::from),
    };
    if let Some(overlap) = number("overlap_s") {
        body.insert("overlap_s".to_owned(), overlap);
    }
    if let Some(days) = number("expires_in_days") {
        let seconds = days.as_i64().map(|days| days.saturating_mul(DAY_S));
        let end =
            seconds.and_then(|seconds| now.checked_add(SignedDuration::from_secs(seconds)).ok());
        body.insert(
            "expires_at".to_owned(),
            end.map_or(days, |end| end.to_string().into()),
        );
    }
    body
}

/// POST …/revoke: ends one key at once.
async fn revoke_key(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let keys = load_keys(&state, session.taxpayer).await?;
    let key = keys
        .into_iter()
        .find(|key| key.id == ids.1)
        .ok_or_else(ApiError::route_not_found)?;
    session
        .send(
            &state,
            RevokeKey {
                id: key.id,
                by: session.by,
                reason: None,
            },
        )
        .await?;
    Ok(go_to(
        &format!("{}/keys", base_path(&session)),
        "The key was revoked. It is refused from now on.",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_says_what_the_api_asks_for() {
        let body = |fields: [(&str, &str); 3]| {
            Value::Object(to_api_body(
                &FormValues::from(fields),
                Timestamp::UNIX_EPOCH,
            ))
        };
        let all = body([
            ("scope", "read_only"),
            ("overlap_s", "3600"),
            ("expires_in_days", "30"),
        ]);
        let expected = json!({ "scope": "read_only", "overlap_s": 3_600, "expires_at": "1970-01-31T00:00:00Z" });
        assert_eq!(all, expected);
        assert_eq!(
            body([("scope", ""), ("overlap_s", ""), ("expires_in_days", "")]),
            json!({})
        );
        let odd = body([
            ("scope", ""),
            ("overlap_s", "x"),
            ("expires_in_days", "soon"),
        ]);
        assert_eq!(
            odd,
            json!({ "overlap_s": "x", "expires_at": "soon" }),
            "the form of the API refuses it"
        );
    }
}
