//! Integrators and operators with their API keys: id, scope, expiry and last use. A key's text is shown only once.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::access::api_key::{AccountWithKeys, ApiKey, KeyScope};
use crate::domain::access::session::OperatorRole;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::store::accounts::RevokedCounts;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView<'a> {
    id: i64,
    /// Name of the integrator; absent for an operator, who has no name.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    email: &'a str,
    /// Role of the operator, which its keys carry; absent for an integrator.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<OperatorRole>,
    created_at: String,
    /// Time at which the account was disabled; null if it is enabled.
    disabled_at: Option<String>,
    /// Ordered by the time of creation, newest key first.
    api_keys: Vec<ApiKeyView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
struct ApiKeyView<'a> {
    /// Names the key in lists. This id is not secret: it cannot authenticate a request.
    id: &'a str,
    /// The name that a person gave the key; null if it has none.
    name: Option<&'a str>,
    /// The last four characters of the key; null for old keys, for which they were not stored.
    last_four: Option<&'a str>,
    scope: KeyScope,
    created_at: String,
    expires_at: Option<String>,
    /// Time of the last request with this key, accurate to about a minute; null before the first use.
    last_used_at: Option<String>,
    /// IP address from which the last request with this key came; null if it is not known.
    #[schema(value_type = Option<String>)]
    last_used_from: Option<IpAddr>,
    is_valid: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub(crate) struct NewApiKey<'a> {
    pub(crate) id: i64,
    pub(crate) api_key: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedKeys {
    pub(crate) id: i64,
    /// Number of revoked keys of the account itself.
    pub(crate) revoked: u64,
    /// Number of revoked keys of the taxpayers that the integrator onboarded.
    pub(crate) revoked_of_taxpayers: u64,
    /// Number of ended sessions, including sign-ins that still waited for the code of the second factor.
    pub(crate) ended_sessions: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EnabledAccount {
    pub(crate) id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedRole {
    pub(crate) id: i64,
    pub(crate) role: OperatorRole,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedContact {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) id: ContactId,
    /// Number of ended sessions.
    pub(crate) ended_sessions: u64,
}

impl RevokedKeys {
    pub(crate) fn new(id: i64, ended: RevokedCounts) -> Self {
        let RevokedCounts {
            revoked,
            revoked_of_taxpayers,
            sessions,
        } = ended;
        Self {
            id,
            revoked,
            revoked_of_taxpayers,
            ended_sessions: sessions,
        }
    }
}

impl<'a> AccountView<'a> {
    pub(crate) fn new(account: &'a AccountWithKeys, now: Timestamp) -> Self {
        Self {
            id: account.id,
            name: account.name.as_deref(),
            email: &account.email,
            role: account.role,
            created_at: precise_time(account.created_at),
            disabled_at: account.disabled_at.map(precise_time),
            api_keys: account
                .keys
                .iter()
                .map(|key| ApiKeyView::new(key, now))
                .collect(),
        }
    }
}

impl<'a> ApiKeyView<'a> {
    fn new(key: &'a ApiKey, now: Timestamp) -> Self {
        Self {
            id: &key.id,
            name: key.name.as_deref(),
            last_four: key.last_four.as_deref(),
            scope: key.scope,
            created_at: precise_time(key.created_at),
            expires_at: key.expires_at.map(precise_time),
            last_used_at: key.last_used_at.map(precise_time),
            last_used_from: key.last_used_from,
            is_valid: key.is_valid(now),
        }
    }
}
