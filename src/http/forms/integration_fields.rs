//! The fields that each type of authentication and each data format of an integration has.

use crate::domain::integration::{AuthType, DataFormat};
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::reader::Reader;

/// Returns the fields of this authentication type. Every other authentication field is a fault.
pub(crate) fn auth_fields(kind: AuthType) -> &'static [&'static str] {
    match kind {
        AuthType::None => &[],
        AuthType::Basic => &["username", "password"],
        AuthType::ApiKey => &["header", "value"],
        AuthType::OAuth2 => &[
            "token_url",
            "client_id",
            "client_secret",
            "refresh_token",
            "scope",
            "client_authentication",
        ],
        AuthType::ClientCredentials => &[
            "token_url",
            "client_id",
            "client_secret",
            "scope",
            "client_authentication",
        ],
        AuthType::Ntlm => &["username", "password", "domain"],
    }
}

/// Returns the settings of this data format. Every other setting is a fault.
pub(crate) fn format_settings(kind: DataFormat) -> &'static [&'static str] {
    match kind {
        DataFormat::Rest | DataFormat::OData => &[],
        DataFormat::Soap => &["action", "namespace", "method"],
        DataFormat::GraphQl => &["mutation"],
        DataFormat::JsonRpc => &["method"],
    }
}

pub(super) fn refuse_other_fields(
    reader: &Reader<'_>,
    all_fields: &[&'static str],
    allowed: &[&str],
) {
    for name in all_fields
        .iter()
        .filter(|name| reader.has(name) && !allowed.contains(*name))
    {
        reader.report_fault(
            name,
            FieldRule::other("prohibited", "does not belong to this type; leave it out"),
        );
    }
}
