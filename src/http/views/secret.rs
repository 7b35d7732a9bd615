//! Secrets that are shown once: a new key, a new signing secret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::ids::TaxpayerId;

#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKey<'a> {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) api_key: &'a str,
}

/// Exactly one field is present: the shared secret, or the public key that verifies the signatures.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedSecret<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<&'a str>,
}
