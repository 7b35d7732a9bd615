//! The account of a person, which owns the person's sessions, second factor and invitation.

use database::column::RowRef;
use database::{StoreError, Transaction};
use sea_orm::{EntityTrait, QuerySelect};

use crate::domain::access::session::{ContactRole, OperatorRole, Person, Rights, SessionOwner};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};
use crate::store::Store;
use crate::store::accounts::{contact_row, integrator_row, operator_row, second_factors};

/// Finds a person by its account; `None` if the account is disabled or no longer exists.
pub async fn find_person(store: &Store, owner: SessionOwner) -> Result<Option<Person>, StoreError> {
    let reader = store.reader();
    let person = match owner {
        SessionOwner::Operator(id) => {
            let found = operator_row::Entity::find_by_id(id).one(reader).await?;
            found
                .filter(|row| row.disabled_at.is_none())
                .map(person_from_operator)
                .transpose()?
        }
        SessionOwner::Contact { taxpayer, id } => {
            let found = contact_row::Entity::find_by_id((taxpayer.0, id.0))
                .one(reader)
                .await?;
            found
                .filter(|row| row.disabled_at.is_none())
                .map(person_from_contact)
                .transpose()?
        }
        SessionOwner::Integrator(id) => {
            let found = integrator_row::Entity::find_by_id(id.0).one(reader).await?;
            found
                .filter(|row| row.disabled_at.is_none())
                .map(person_from_integrator)
        }
    };
    let Some(person) = person else {
        return Ok(None);
    };
    let has_second_factor = second_factors::is_on(reader, owner).await?;
    Ok(Some(Person {
        has_second_factor,
        ..person
    }))
}

/// A person's account that this transaction has locked, so that no other one can change it.
#[derive(Debug)]
pub(super) struct LockedAccount {
    password_hash: Option<String>,
    is_disabled: bool,
    rights: Rights,
}

impl LockedAccount {
    fn new(person: &Person, password_hash: Option<String>, disabled_at: Option<i64>) -> Self {
        Self {
            password_hash,
            is_disabled: disabled_at.is_some(),
            rights: person.rights,
        }
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// True if the account may make links with which other people choose a password.
    pub(super) fn may_invite(&self) -> bool {
        let inviting = [
            Rights::Account(ContactRole::Owner),
            Rights::Operate(OperatorRole::Admin),
        ];
        !self.is_disabled && inviting.contains(&self.rights)
    }

    /// True if the account is enabled and has the password with this hash.
    pub(super) fn is_enabled_with_password(&self, password_hash: &str) -> bool {
        !self.is_disabled && self.password_hash.as_deref() == Some(password_hash)
    }
}

/// Locks the account of a person for the rest of the transaction. `None` if the account does not exist.
pub(super) async fn lock_person(
    tx: &Transaction,
    owner: SessionOwner,
) -> Result<Option<LockedAccount>, StoreError> {
    let locked = match owner {
        SessionOwner::Operator(id) => {
            let found = operator_row::Entity::find_by_id(id)
                .lock_exclusive()
                .one(tx)
                .await?;
            found.map(|row| {
                let hash = Some(row.password_hash.clone());
                let disabled_at = row.disabled_at;
                person_from_operator(row)
                    .map(|person| LockedAccount::new(&person, hash, disabled_at))
            })
        }
        SessionOwner::Contact { taxpayer, id } => {
            let found = contact_row::Entity::find_by_id((taxpayer.0, id.0))
                .lock_exclusive()
                .one(tx)
                .await?;
            found.map(|row| {
                let hash = row.password_hash.clone();
                let disabled_at = row.disabled_at;
                person_from_contact(row)
                    .map(|person| LockedAccount::new(&person, hash, disabled_at))
            })
        }
        SessionOwner::Integrator(id) => {
            let found = integrator_row::Entity::find_by_id(id.0)
                .lock_exclusive()
                .one(tx)
                .await?;
            found.map(|row| {
                let hash = row.password_hash.clone();
                let disabled_at = row.disabled_at;
                Ok(LockedAccount::new(
                    &person_from_integrator(row),
                    hash,
                    disabled_at,
                ))
            })
        }
    };
    locked.transpose()
}

pub(super) fn person_from_contact(row: contact_row::Model) -> Result<Person, StoreError> {
    let role: ContactRole = RowRef {
        table: "contacts",
        id: row.id,
    }
    .parse(&row.role)?;
    Ok(Person {
        owner: SessionOwner::Contact {
            taxpayer: TaxpayerId(row.taxpayer_id),
            id: ContactId(row.id),
        },
        email: row.email,
        name: Some(format!("{} {}", row.first_name, row.last_name)),
        rights: Rights::Account(role),
        has_second_factor: false,
    })
}

impl TryFrom<operator_row::Model> for Person {
    type Error = StoreError;

    fn try_from(row: operator_row::Model) -> Result<Self, StoreError> {
        person_from_operator(row)
    }
}

pub(super) fn person_from_operator(row: operator_row::Model) -> Result<Person, StoreError> {
    let role = RowRef {
        table: "operators",
        id: row.id,
    }
    .parse(&row.role)?;
    Ok(Person {
        owner: SessionOwner::Operator(row.id),
        email: row.email,
        name: None,
        rights: Rights::Operate(role),
        has_second_factor: false,
    })
}

/// Converts an integrator to a person. An integrator has one account, with all rights on the taxpayers that it
/// onboarded.
pub(super) fn person_from_integrator(row: integrator_row::Model) -> Person {
    Person {
        owner: SessionOwner::Integrator(IntegratorId(row.id)),
        email: row.email,
        name: Some(row.name),
        rights: Rights::Account(ContactRole::Owner),
        has_second_factor: false,
    }
}
