//! A contact person as operators see it in the API: its role and its state, without its contact data.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::access::session::ContactRole;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::ContactId;
use crate::store::accounts::contacts::ContactAccess;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContactAccess)]
pub(crate) struct ContactAccessView {
    id: ContactId,
    name: String,
    role: ContactRole,
    /// True if the person may not sign in.
    is_disabled: bool,
    created_at: String,
}

impl From<&ContactAccess> for ContactAccessView {
    fn from(access: &ContactAccess) -> Self {
        let contact = &access.contact;
        Self {
            id: ContactId(contact.id),
            name: format!("{} {}", contact.first_name, contact.last_name),
            role: access.role,
            is_disabled: access.is_disabled,
            created_at: precise_time(contact.created_at),
        }
    }
}
