//! The saved views: filters of the list of invoices that a person has stored under names.

use database::{StoreError, Transaction};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{IntoActiveModel, QueryOrder, Select};

use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::notice::NoticeScope;
use crate::store::Store;
use crate::store::accounts::person_accounts;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "saved_views")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub person: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub query: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The maximum number of views that a person may save for one taxpayer's account.
pub const VIEWS_MAX: u64 = 20;

/// The person who saved the views, and the account whose invoices they filter.
#[derive(Debug, Clone, Copy)]
pub struct ViewOwner {
    pub person: SessionOwner,
    pub taxpayer: TaxpayerId,
}

impl ViewOwner {
    fn select_views(self) -> Select<Entity> {
        Entity::find()
            .filter(Column::Person.eq(person_key(self.person)))
            .filter(Column::TaxpayerId.eq(self.taxpayer.0))
    }
}

fn person_key(person: SessionOwner) -> String {
    NoticeScope::Person(person).to_string()
}

/// Returns the name and the query of each view, ordered by name.
pub async fn owned_by(
    store: &Store,
    owner: ViewOwner,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = owner.select_views().order_by_asc(Column::Name);
    let rows = rows.all(store.reader()).await?;
    Ok(rows.into_iter().map(|row| (row.name, row.query)).collect())
}

/// Stores a query under a name, and replaces the view that already has this name. Returns false if the person already
/// has `VIEWS_MAX` other views, or does not exist any more.
pub async fn save(
    store: &Store,
    owner: ViewOwner,
    name: &str,
    query: &str,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    // Without this lock, two calls at the same time could count the same views and together exceed the limit.
    if person_accounts::lock_person(&tx, owner.person)
        .await?
        .is_none()
    {
        return Ok(false);
    }
    let others = owner.select_views().filter(Column::Name.ne(name));
    if others.count(&tx).await? >= VIEWS_MAX {
        return Ok(false);
    }
    let row = Model {
        person: person_key(owner.person),
        taxpayer_id: owner.taxpayer.0,
        name: name.to_owned(),
        query: query.to_owned(),
    };
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::columns([Column::Person, Column::TaxpayerId, Column::Name])
                .update_column(Column::Query)
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}

/// Deletes the view with this name, if there is one.
pub async fn delete(store: &Store, owner: ViewOwner, name: &str) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    let key = (person_key(owner.person), owner.taxpayer.0, name.to_owned());
    Entity::delete_by_id(key).exec(&tx).await?;
    tx.commit().await
}

/// Deletes all views of a person.
pub(super) async fn delete_owned_by(
    tx: &Transaction,
    person: SessionOwner,
) -> Result<(), StoreError> {
    let views = Entity::delete_many();
    views
        .filter(Column::Person.eq(person_key(person)))
        .exec(tx)
        .await?;
    Ok(())
}
