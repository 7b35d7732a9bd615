//! The integration record (spec.md, "Webhook / integration record"). Of how the ERP takes notifications it shows
//! the kinds alone.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::delivery::Endpoint;
use crate::domain::ids::TaxpayerId;
use crate::domain::integration::{AuthType, DataFormat, Kinds};
use crate::domain::object::plain;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Integration<'a> {
    id: i64,
    taxpayer_id: TaxpayerId,
    webhook_url: &'a str,
    enabled_events: &'a [String],
    is_active: bool,
    disabled_reason: Option<&'a str>,
    erp_system: Option<&'a str>,
    auth_type: AuthType,
    data_format: DataFormat,
    created_at: String,
    updated_at: String,
}

impl<'a> Integration<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint, kinds: &'a Kinds) -> Self {
        Self {
            id: endpoint.id,
            taxpayer_id: endpoint.taxpayer_id,
            webhook_url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            erp_system: kinds.erp_system.as_deref(),
            auth_type: kinds.auth_type,
            data_format: kinds.data_format,
            created_at: plain(endpoint.created_at),
            updated_at: plain(endpoint.updated_at),
        }
    }
}
