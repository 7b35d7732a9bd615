//! The settings for notifying a taxpayer's ERP. No secret is shown, only the names of the secrets that are set.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::integration::{
    Auth, AuthType, ClientAuthentication, DataFormat, Format, Integration, IntegrationSummary,
};
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErpSettings {
    taxpayer_id: TaxpayerId,
    erp_system: Option<String>,
    auth_type: AuthType,
    data_format: DataFormat,
    auth: AuthSettings,
    /// The scheme, host and port to which the credentials may be sent. A webhook with another origin does not receive
    /// them.
    origin: Option<String>,
    /// Networks in which this taxpayer's webhook may be, in addition to the networks that the deployment allows.
    allowed_networks: Vec<String>,
    format: FormatSettings,
    /// Names of the secrets in `auth` that have a stored value.
    secrets_set: Vec<&'static str>,
    /// Time at which settings were first stored; null if no settings were ever stored.
    created_at: Option<String>,
    updated_at: Option<String>,
}

/// Settings of the authentication type. Secrets are not shown.
#[derive(Debug, Default, Serialize, ToSchema)]
struct AuthSettings {
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    token_url: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    client_authentication: Option<ClientAuthentication>,
}

/// Settings of the data format. A setting that the operator did not send has its default.
#[derive(Debug, Default, Serialize, ToSchema)]
struct FormatSettings {
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    mutation: Option<String>,
}

impl ErpSettings {
    pub(crate) fn new(taxpayer_id: TaxpayerId, stored: Option<Integration>) -> Self {
        let (created_at, updated_at) = stored
            .as_ref()
            .map(|integration| {
                (
                    plain_time(integration.created_at),
                    plain_time(integration.updated_at),
                )
            })
            .unzip();
        let integration = stored.unwrap_or_default();
        let IntegrationSummary {
            erp_system,
            auth_type,
            data_format,
        } = integration.summary();
        Self {
            taxpayer_id,
            erp_system,
            auth_type,
            data_format,
            secrets_set: integration
                .auth
                .secrets()
                .into_iter()
                .map(|(name, _)| name)
                .collect(),
            allowed_networks: integration
                .allowed_networks
                .iter()
                .map(ToString::to_string)
                .collect(),
            auth: AuthSettings::from_auth(integration.auth),
            origin: integration.origin.map(|origin| origin.to_string()),
            format: FormatSettings::from_format(integration.format),
            created_at,
            updated_at,
        }
    }
}

impl AuthSettings {
    fn from_auth(auth: Auth) -> Self {
        match auth {
            Auth::None => Self::default(),
            Auth::Basic { username, .. } => Self {
                username: Some(username),
                ..Self::default()
            },
            Auth::ApiKey { header, .. } => Self {
                header: Some(header),
                ..Self::default()
            },
            Auth::Ntlm {
                username, domain, ..
            } => Self {
                username: Some(username),
                domain,
                ..Self::default()
            },
            Auth::OAuth2 { client, .. } | Auth::ClientCredentials { client } => Self {
                token_url: Some(client.token_url),
                client_id: Some(client.client_id),
                scope: client.scope,
                client_authentication: Some(client.authentication),
                ..Self::default()
            },
        }
    }
}

impl FormatSettings {
    fn from_format(format: Format) -> Self {
        match format {
            Format::Rest | Format::OData => Self::default(),
            Format::Soap {
                action,
                namespace,
                method,
            } => Self {
                action: Some(action),
                namespace: Some(namespace),
                method: Some(method),
                ..Self::default()
            },
            Format::GraphQl { mutation } => Self {
                mutation: Some(mutation),
                ..Self::default()
            },
            Format::JsonRpc { method } => Self {
                method: Some(method),
                ..Self::default()
            },
        }
    }
}
