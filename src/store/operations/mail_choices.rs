//! The topics about which people want no mails, for some time or permanently.

use std::collections::{HashMap, HashSet};

use database::column::RowRef;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;

use crate::domain::notice::{NoticeScope, NoticeTopic};
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "mail_choices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub person: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub topic: String,
    pub until: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A person's choice about the mails of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailChoice {
    /// The person gets the mails.
    Sent,
    MutedUntil(Timestamp),
    Never,
}

/// The value of the column `until` for a choice that never ends.
const FOR_EVER: i64 = i64::MAX;

/// Stores the choices of a person about topics.
pub async fn set_choices(
    store: &Store,
    person: NoticeScope,
    choices: &[(NoticeTopic, MailChoice)],
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    for (topic, choice) in choices {
        let until = match choice {
            MailChoice::Sent => {
                let key = (person.to_string(), topic.to_string());
                Entity::delete_by_id(key).exec(&tx).await?;
                continue;
            }
            MailChoice::MutedUntil(until) => until.as_microsecond(),
            MailChoice::Never => FOR_EVER,
        };
        let row = Model {
            person: person.to_string(),
            topic: topic.to_string(),
            until,
        };
        Entity::insert(row.into_active_model())
            .on_conflict(
                OnConflict::columns([Column::Person, Column::Topic])
                    .update_column(Column::Until)
                    .to_owned(),
            )
            .exec_without_returning(&tx)
            .await?;
    }
    tx.commit().await
}

/// Deletes the choices of a person.
pub(in crate::store) async fn delete_owned_by(
    tx: &Transaction,
    person: NoticeScope,
) -> Result<(), StoreError> {
    let choices = Entity::delete_many();
    choices
        .filter(Column::Person.eq(person.to_string()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Returns the topics about which a person wants no mails now, permanently or until a time.
pub async fn owned_by(
    store: &Store,
    person: NoticeScope,
    now: Timestamp,
) -> Result<HashMap<NoticeTopic, MailChoice>, StoreError> {
    let rows = Entity::find()
        .filter(Column::Person.eq(person.to_string()))
        .filter(Column::Until.gt(now.as_microsecond()))
        .all(store.reader())
        .await?;
    let choices = rows.into_iter().map(|row| {
        let at = RowRef {
            table: "mail_choices",
            id: row.person.as_str(),
        };
        let choice = match row.until {
            FOR_EVER => MailChoice::Never,
            until => MailChoice::MutedUntil(at.moment(until)?),
        };
        Ok((at.parse(&row.topic)?, choice))
    });
    choices.collect()
}

/// Returns the people in this list who want no mails about a topic now.
pub async fn find_muted_people(
    store: &Store,
    people: &[NoticeScope],
    topic: NoticeTopic,
    now: Timestamp,
) -> Result<HashSet<String>, StoreError> {
    let mut muted = HashSet::new();
    for some in statement_portions(people) {
        let rows = Entity::find()
            .filter(Column::Person.is_in(some.iter().map(ToString::to_string)))
            .filter(Column::Topic.eq(topic.as_str()))
            .filter(Column::Until.gt(now.as_microsecond()))
            .all(store.reader())
            .await?;
        muted.extend(rows.into_iter().map(|row| row.person));
    }
    Ok(muted)
}
