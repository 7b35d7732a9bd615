//! What is shown once and never again: a new key, a new signing secret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::ids::TaxpayerId;

#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKey<'a> {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) api_key: &'a str,
}

/// One of the two: a secret that is shared, or what verifies the signatures of one that is not.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedSecret<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<&'a str>,
}
