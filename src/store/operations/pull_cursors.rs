//! The times at which the poller last read the authority's list of invoices in transit.

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;

use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "pull_cursors")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub pulled_at: Option<i64>,
    pub swept_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

const NAME: &str = "transit";

/// The times of the last reads of the list: `pulled_at` for its recent part, `swept_at` for the whole list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PullCursor {
    pub pulled_at: Option<Timestamp>,
    pub swept_at: Option<Timestamp>,
}

pub async fn load(store: &Store) -> Result<PullCursor, StoreError> {
    let Some(row) = Entity::find_by_id(NAME).one(store.reader()).await? else {
        return Ok(PullCursor::default());
    };
    let at = RowRef {
        table: "pull_cursors",
        id: NAME,
    };
    Ok(PullCursor {
        pulled_at: at.optional_moment(row.pulled_at)?,
        swept_at: at.optional_moment(row.swept_at)?,
    })
}

pub async fn save(tx: &Transaction, cursor: PullCursor) -> Result<(), StoreError> {
    let row = Model {
        name: NAME.to_owned(),
        pulled_at: cursor.pulled_at.map(Timestamp::as_microsecond),
        swept_at: cursor.swept_at.map(Timestamp::as_microsecond),
    };
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::Name)
                .update_columns([Column::PulledAt, Column::SweptAt])
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn a_cursor_is_none_at_first_and_then_the_last_one_that_was_saved() {
        for test in stores().await {
            assert_eq!(load(&test.store).await.unwrap(), PullCursor::default());
            let at = |second| Some(Timestamp::from_second(second).unwrap());
            for cursor in [
                PullCursor {
                    pulled_at: at(1),
                    swept_at: None,
                },
                PullCursor {
                    pulled_at: at(3),
                    swept_at: at(2),
                },
            ] {
                let tx = test.store.begin().await.unwrap();
                save(&tx, cursor).await.unwrap();
                tx.commit().await.unwrap();
                assert_eq!(load(&test.store).await.unwrap(), cursor);
            }
        }
    }
}
