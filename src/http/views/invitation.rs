//! A one-time link with which a person chooses a password. The link is shown only once.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub(crate) struct InvitationView<'a> {
    /// The id of the person: of the contact, the integrator or the operator.
    pub(crate) id: i64,
    pub(crate) email: &'a str,
    /// The address of the page where the person chooses a password. Only its path is given if the person signs in on
    /// another host than the caller.
    pub(crate) link: &'a str,
    /// The link is valid until this time, and ends when it is used.
    pub(crate) expires_at: String,
}
