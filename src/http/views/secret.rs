//! Responses that show a secret, such as a new API key or a new signing secret. Each secret is shown only once.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::ids::TaxpayerId;

#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKey<'a> {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) api_key: &'a str,
}

/// The new signing secret. Exactly one field is present: `secret` if both sides share the secret, or `public_key` if
/// deliveries are signed with a key pair.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedSecret<'a> {
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<&'a str>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<&'a str>,
}
