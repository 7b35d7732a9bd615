//! The table of sessions. A row holds the SHA-256 of the token, never the token.

use database::StoreError;
use database::column::RowRef;
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use secrecy::SecretString;

use crate::domain::access::session::{SessionKind, SessionOwner, SessionTimes, SignInPlace};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

/// A session that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    pub token: &'a SecretString,
    pub owner: SessionOwner,
    /// The hash of the password that the person entered. If the password of the account has changed meanwhile, no
    /// session begins.
    pub password_hash: &'a str,
    /// True if the person has entered a code, too. If the account has a second factor, no session begins without a
    /// code, except the session that waits for the code.
    pub has_code: bool,
    pub place: &'a SignInPlace,
    /// The previous session token of the browser, whose session ends when the new one begins.
    pub replaces: Option<&'a SecretString>,
}

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
    pub address: Option<String>,
    pub browser: Option<String>,
    pub confirmed_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub(super) fn new(
        hash: String,
        new: &NewSession<'_>,
        times: &SessionTimes,
        awaits_code: bool,
    ) -> Self {
        let NewSession { owner, place, .. } = new;
        Self {
            hash,
            kind: owner.kind().to_string(),
            account_id: owner.id(),
            taxpayer_id: owner.taxpayer().map(|taxpayer| taxpayer.0),
            created_at: times.created_at.as_microsecond(),
            seen_at: times.seen_at.as_microsecond(),
            expires_at: times.expires_at.as_microsecond(),
            awaits_code,
            address: place.address.map(|address| address.to_string()),
            browser: place.browser.clone(),
            confirmed_at: if awaits_code {
                0
            } else {
                times.created_at.as_microsecond()
            },
        }
    }

    pub(super) fn owner(&self) -> Result<SessionOwner, StoreError> {
        to_owner(
            &self.row_ref(),
            &self.kind,
            self.account_id,
            self.taxpayer_id,
        )
    }

    pub(super) fn times(&self) -> Result<SessionTimes, StoreError> {
        let at = self.row_ref();
        Ok(SessionTimes {
            created_at: at.moment(self.created_at)?,
            seen_at: at.moment(self.seen_at)?,
            expires_at: at.moment(self.expires_at)?,
        })
    }

    pub(super) fn sign_in_place(&self) -> Result<SignInPlace, StoreError> {
        let at = self.row_ref();
        let address = self
            .address
            .as_ref()
            .map(|address| at.parse(address))
            .transpose()?;
        Ok(SignInPlace {
            address,
            browser: self.browser.clone(),
        })
    }

    pub(super) fn confirmed_at(&self) -> Result<Timestamp, StoreError> {
        self.row_ref().moment(self.confirmed_at)
    }

    /// Returns the reference to this row for error messages. It names the account, because the hash would identify the
    /// session.
    fn row_ref(&self) -> RowRef<i64> {
        RowRef {
            table: "sessions",
            id: self.account_id,
        }
    }
}

/// Converts the columns that name a person's account.
pub(super) fn to_owner(
    place: &RowRef<i64>,
    kind: &str,
    account_id: i64,
    taxpayer_id: Option<i64>,
) -> Result<SessionOwner, StoreError> {
    match (place.parse(kind)?, taxpayer_id) {
        (SessionKind::Operator, None) => Ok(SessionOwner::Operator(account_id)),
        (SessionKind::Integrator, None) => Ok(SessionOwner::Integrator(IntegratorId(account_id))),
        (SessionKind::Contact, Some(taxpayer)) => Ok(SessionOwner::Contact {
            taxpayer: TaxpayerId(taxpayer),
            id: ContactId(account_id),
        }),
        _ => Err(place.corrupt("only a contact has a taxpayer")),
    }
}
