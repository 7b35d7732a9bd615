//! The table of sessions. A row holds the SHA-256 of the token, never the token.

use sea_orm::entity::prelude::*;

use crate::domain::access::session::{SessionKind, SessionOwner, SessionTimes};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};
use crate::store::db::column::RowRef;
use crate::store::db::error::StoreError;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub kind: String,
    pub account_id: i64,
    pub taxpayer_id: Option<i64>,
    pub created_at: i64,
    pub seen_at: i64,
    pub expires_at: i64,
    pub awaits_code: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub(super) fn new(hash: String, owner: SessionOwner, times: &SessionTimes, awaits_code: bool) -> Self {
        Self {
            hash,
            kind: owner.kind().to_string(),
            account_id: owner.id(),
            taxpayer_id: owner.taxpayer().map(|taxpayer| taxpayer.0),
            created_at: times.created_at.as_microsecond(),
            seen_at: times.seen_at.as_microsecond(),
            expires_at: times.expires_at.as_microsecond(),
            awaits_code,
        }
    }

    pub(super) fn owner(&self) -> Result<SessionOwner, StoreError> {
        to_owner(&self.place(), &self.kind, self.account_id, self.taxpayer_id)
    }

    pub(super) fn times(&self) -> Result<SessionTimes, StoreError> {
        let at = self.place();
        Ok(SessionTimes {
            created_at: at.moment(self.created_at)?,
            seen_at: at.moment(self.seen_at)?,
            expires_at: at.moment(self.expires_at)?,
        })
    }

    /// Errors name the account, because the hash would identify a session.
    fn place(&self) -> RowRef<i64> {
        RowRef { table: "sessions", id: self.account_id }
    }
}

/// Reads the account of a person from the columns that name it.
pub(super) fn to_owner(
    place: &RowRef<i64>,
    kind: &str,
    account_id: i64,
    taxpayer_id: Option<i64>,
) -> Result<SessionOwner, StoreError> {
    match (place.parse(kind)?, taxpayer_id) {
        (SessionKind::Operator, None) => Ok(SessionOwner::Operator(account_id)),
        (SessionKind::Integrator, None) => Ok(SessionOwner::Integrator(IntegratorId(account_id))),
        (SessionKind::Contact, Some(taxpayer)) => {
            Ok(SessionOwner::Contact { taxpayer: TaxpayerId(taxpayer), id: ContactId(account_id) })
        }
        _ => Err(place.corrupt("only a contact has a taxpayer")),
    }
}
