//! What is shown once and never again: a new key, a new signing secret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::ids::TaxpayerId;

#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKey<'a> {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) api_key: &'a str,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedSecret<'a> {
    pub(crate) secret: &'a str,
}
