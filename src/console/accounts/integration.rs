//! Shows and changes how the taxpayer's ERP system takes notifications: the system, the authentication and the data
//! format. The chosen types decide which fields the form has. Stored secrets are never shown.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{IfUnchanged, SeenSettings, SetIntegration};
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues, keep_stored_group_if_unchanged};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::integration::{Auth, AuthType, DataFormat, Format, Integration};
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader as BodyReader;
use crate::http::forms::{integration, integration_fields, reader};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::choice::option_label;
use crate::store::webhooks::integrations;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/integration")
            .page(show_integration)
            .form(save_integration),
    ]
}

#[derive(Template)]
#[template(path = "accounts/integration.html")]
struct IntegrationPage {
    frame: Frame,
    base: String,
    erp_systems: Vec<(String, String)>,
    auth_types: Vec<(&'static str, String)>,
    data_formats: Vec<(&'static str, String)>,
    auth_type: AuthType,
    auth_fields: Vec<FieldLine>,
    format_fields: Vec<FieldLine>,
    networks: Vec<String>,
    form: FormState,
}

/// A field of the form.
struct FieldLine {
    /// The path of the field in the API: the object that contains it, and its name, such as `auth.username`.
    name: String,
    label: &'static str,
    is_secret: bool,
    /// True if a secret is stored, so that a blank field keeps it.
    is_stored: bool,
}

async fn show_integration(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    query: Query,
) -> Answer {
    let stored = load_integration(&state, &session).await?;
    let mut values = form_values(&stored).with_original_values();
    if let Some(kind) = query.text("auth_type").and_then(AuthType::parse) {
        values = values.with_fields([("auth_type", kind.as_str())].into());
    }
    if let Some(kind) = query.text("data_format").and_then(DataFormat::parse) {
        values = values.with_fields([("data_format", kind.as_str())].into());
    }
    let form = FormState::new(values);
    show(&integration_page(&state, &session, &stored, form))
}

async fn load_integration(
    state: &ApiState,
    session: &AccountSession,
) -> Result<Integration, ApiError> {
    let found =
        integrations::owned_by(&state.store, state.store.reader(), session.taxpayer).await?;
    Ok(found.unwrap_or_default())
}

/// POST of the form: sets the integration. The networks that the operator allowed stay as they are.
async fn save_integration(
    state: web::Data<ApiState>,
    Owner(session): Owner,
    form: Form<FormValues>,
) -> Answer {
    let policy = state.webhook_address_policy(session.taxpayer).await?;
    let stored = load_integration(&state, &session).await?;
    let body = requested_settings(&form.0, &form_values(&stored));
    let read = |reader: &mut BodyReader<'_>| {
        integration::read(reader, &policy, &state.settings.erp_systems)
    };
    let saved = match reader::read(&body, &state.catalog.get(), read) {
        Ok(form) => {
            let integration::Integration {
                erp_system,
                auth,
                origin,
                format,
                ..
            } = form.value;
            let by = session.by;
            let reason = None;
            let allowed_networks = None;
            let command = SetIntegration {
                erp_system,
                auth,
                origin,
                format,
                allowed_networks,
                by,
                reason,
            };
            let seen = Some(SeenSettings::Integration(Box::new(stored.clone())));
            let change = IfUnchanged { seen, command };
            let saved = session.send(&state, change).await;
            saved.map(drop).map_err(ApiError::from)
        }
        Err(faults) => Err(faults.into()),
    };
    match saved {
        Ok(()) => Ok(go_to(
            &format!("{}/integration", base_path(&session)),
            "The integration was saved.",
        )),
        Err(error) => {
            let form = FormState::from_refusal(error, form.0)?;
            show_with_status(
                StatusCode::UNPROCESSABLE_ENTITY,
                &integration_page(&state, &session, &stored, form),
            )
        }
    }
}

fn integration_page(
    state: &ApiState,
    session: &AccountSession,
    stored: &Integration,
    form: FormState,
) -> IntegrationPage {
    let auth_type = AuthType::parse(form.value("auth_type")).unwrap_or(AuthType::None);
    let data_format = DataFormat::parse(form.value("data_format")).unwrap_or(DataFormat::Rest);
    let stored_secrets: Vec<_> = if stored.auth.kind() == auth_type {
        stored
            .auth
            .secrets()
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    } else {
        Vec::new()
    };
    IntegrationPage {
        frame: Frame::for_account(session, "Integration"),
        base: base_path(session),
        erp_systems: state
            .settings
            .erp_systems
            .iter()
            .map(|system| (system.clone(), option_label(system)))
            .collect(),
        auth_types: AuthType::ALL
            .iter()
            .map(|kind| (kind.as_str(), option_label(kind.as_str())))
            .collect(),
        data_formats: DataFormat::ALL
            .iter()
            .map(|kind| (kind.as_str(), option_label(kind.as_str())))
            .collect(),
        auth_fields: integration_fields::auth_fields(auth_type)
            .iter()
            .map(|name| FieldLine::new("auth", name, stored_secrets.contains(name)))
            .collect(),
        format_fields: integration_fields::format_settings(data_format)
            .iter()
            .map(|name| FieldLine::new("format", name, false))
            .collect(),
        networks: stored
            .allowed_networks
            .iter()
            .map(ToString::to_string)
            .collect(),
        auth_type,
        form,
    }
}

impl FieldLine {
    fn new(object: &str, name: &str, is_stored: bool) -> Self {
        let (label, is_secret) = match name {
            "username" => ("User name", false),
            "password" => ("Password", true),
            "domain" => ("Domain", false),
            "header" => ("Name of the header", false),
            "value" => ("Value of the header", true),
            "token_url" => ("Token URL", false),
            "client_id" => ("Client id", false),
            "client_secret" => ("Client secret", true),
            "refresh_token" => ("Refresh token", true),
            "scope" => ("Scope", false),
            "client_authentication" => ("How the client proves itself: basic or body", false),
            "action" => ("SOAP action", false),
            "namespace" => ("Namespace", false),
            "mutation" => ("Mutation", false),
            _ => ("Method", false),
        };
        Self {
            name: format!("{object}.{name}"),
            label,
            is_secret,
            is_stored,
        }
    }
}

/// Returns the form as a body of the API: only the fields of the chosen types, without blank ones.
fn to_api_body(values: &FormValues) -> Map<String, Value> {
    let mut body = values.to_object(&["erp_system", "auth_type", "data_format", "origin"]);
    let auth = AuthType::parse(values.text("auth_type"))
        .map(integration_fields::auth_fields)
        .unwrap_or_default();
    let format = DataFormat::parse(values.text("data_format"))
        .map(integration_fields::format_settings)
        .unwrap_or_default();
    for (object, fields) in [("auth", auth), ("format", format)] {
        let filled = fields.iter().filter_map(|field| {
            let text = values.text(&format!("{object}.{field}"));
            (!text.is_empty()).then(|| ((*field).to_owned(), Value::from(text)))
        });
        if !fields.is_empty() {
            body.insert(object.to_owned(), Value::Object(filled.collect()));
        }
    }
    body
}

/// The members of the body that are kept or changed together. Credentials and the host that they are for (`origin`)
/// are one group, so that credentials never go to another host than the one that the person saw.
const GROUPS: [&[&str]; 3] = [
    &["erp_system"],
    &["auth_type", "auth", "origin"],
    &["data_format", "format"],
];

/// Returns the settings that the form asks for. Groups that the person did not change on the page keep the values that
/// are stored by now, so that the form does not undo what somebody else has changed since its page was rendered.
fn requested_settings(sent: &FormValues, stored: &FormValues) -> Map<String, Value> {
    let mut body = to_api_body(sent);
    let page_values = sent.original_values();
    if page_values != FormValues::default() {
        let [before, stored] = [&page_values, stored].map(to_api_body);
        for group in GROUPS {
            keep_stored_group_if_unchanged(&mut body, &before, &stored, group);
        }
    }
    body
}

/// Returns the stored settings as the fields of the form, without secrets.
fn form_values(stored: &Integration) -> FormValues {
    let fields = stored_fields(stored);
    fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn stored_fields(stored: &Integration) -> Vec<(String, String)> {
    let mut values = vec![
        (
            "erp_system".to_owned(),
            stored.erp_system.clone().unwrap_or_default(),
        ),
        ("auth_type".to_owned(), stored.auth.kind().to_string()),
        ("data_format".to_owned(), stored.format.kind().to_string()),
        (
            "origin".to_owned(),
            stored
                .origin
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ),
    ];
    let mut add = |name: &str, value: &str| values.push((name.to_owned(), value.to_owned()));
    match &stored.auth {
        Auth::None => {}
        Auth::Basic { username, .. } => add("auth.username", username),
        Auth::ApiKey { header, .. } => add("auth.header", header),
        Auth::Ntlm {
            username, domain, ..
        } => {
            add("auth.username", username);
            add("auth.domain", domain.as_deref().unwrap_or_default());
        }
        Auth::OAuth2 { client, .. } | Auth::ClientCredentials { client } => {
            add("auth.token_url", &client.token_url);
            add("auth.client_id", &client.client_id);
            add("auth.scope", client.scope.as_deref().unwrap_or_default());
            add("auth.client_authentication", client.authentication.as_str());
        }
    }
    match &stored.format {
        Format::Rest | Format::OData => {}
        Format::Soap {
            action,
            namespace,
            method,
        } => {
            add("format.action", action);
            add("format.namespace", namespace);
            add("format.method", method);
        }
        Format::GraphQl { mutation } => add("format.mutation", mutation),
        Format::JsonRpc { method } => add("format.method", method),
    }
    values
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_has_the_fields_of_the_chosen_types_only() {
        let values = FormValues::from([
            ("erp_system", ""),
            ("auth_type", "basic"),
            ("data_format", "soap"),
            ("auth.username", "u"),
            ("auth.password", ""),
            ("auth.client_id", "left over"),
            ("format.method", "Notify"),
            ("allowed_networks", "10.0.0.0/8"),
        ]);
        let expected = json!({
            "auth_type": "basic", "data_format": "soap",
            "auth": { "username": "u" }, "format": { "method": "Notify" },
        });
        assert_eq!(Value::Object(to_api_body(&values)), expected);
    }

    #[test]
    fn no_secret_is_among_the_values() {
        let auth = Auth::Basic {
            username: "u".into(),
            password: "hidden".to_owned().into(),
        };
        let values = stored_fields(&Integration {
            auth,
            ..Integration::default()
        });
        assert!(values.contains(&("auth.username".to_owned(), "u".to_owned())));
        assert!(!values.iter().any(|(_, value)| value == "hidden"));
    }

    #[test]
    fn what_was_not_changed_on_the_page_keeps_what_is_stored_by_now() {
        type Fields = &'static [(&'static str, &'static str)];
        let none: Fields = &[("auth_type", "none"), ("data_format", "rest")];
        let basic: Fields = &[
            ("auth_type", "basic"),
            ("data_format", "rest"),
            ("origin", "https://new.example"),
            ("auth.username", "u"),
        ];
        let nothing: Fields = &[];
        let system: Fields = &[("erp_system", "SAP")];
        let typed: Fields = &[
            ("auth_type", "basic"),
            ("auth.username", "v"),
            ("auth.password", "p"),
        ];
        let kept = json!({
            "auth_type": "basic", "data_format": "rest", "origin": "https://new.example", "auth": { "username": "u" },
        });
        let with_system = json!({
            "auth_type": "basic", "data_format": "rest", "origin": "https://new.example", "auth": { "username": "u" },
            "erp_system": "SAP",
        });
        let own = json!({
            "auth_type": "basic", "data_format": "rest", "auth": { "username": "v", "password": "p" },
        });
        for (changes, expected) in [(nothing, kept), (system, with_system), (typed, own)] {
            let values = |fields: Fields| fields.iter().copied().collect::<FormValues>();
            let page = values(none).with_original_values();
            let sent = page.with_fields(values(changes));
            let body = requested_settings(&sent, &values(basic));
            assert_eq!(Value::Object(body), expected, "{sent:?}");
        }
    }
}
