//! The operators' list of API keys of all accounts.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use database::page::{self, Page};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::access::api_key::{ApiKey, KeyOwner};
use crate::domain::access::caller::KeyKind;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::accounts::api_key_row::{Column, Entity};
use crate::store::accounts::{integrator_row, operator_row, taxpayers};

/// The filter of the list. A field that is `None` does not filter.
#[derive(Debug, Default)]
pub struct KeyFilter {
    pub kind: Option<KeyKind>,
    pub owner_id: Option<i64>,
    /// The last characters of the key's text.
    pub last_four: Option<String>,
    /// The IP address from which the key was last used, as far as this was recorded.
    pub last_used_from: Option<String>,
}

/// A key with the account that it belongs to.
#[derive(Debug)]
pub struct ListedKey {
    pub owner: KeyOwner,
    /// The name of the taxpayer or the integrator, or the email of the operator.
    pub owner_name: String,
    pub key: ApiKey,
}

/// Loads one page of the matching keys, newest first, and the number of all matches.
pub async fn page(
    store: &Store,
    filter: KeyFilter,
    page: Page,
) -> Result<(Vec<ListedKey>, u64), StoreError> {
    let wanted = Condition::all()
        .add_option(filter.kind.map(|kind| Column::Kind.eq(kind.as_str())))
        .add_option(filter.owner_id.map(|id| Column::OwnerId.eq(id)))
        .add_option(filter.last_four.map(|end| Column::LastFour.eq(end)))
        .add_option(
            filter
                .last_used_from
                .map(|address| Column::LastUsedFrom.eq(address)),
        );
    let found = Entity::find()
        .filter(wanted)
        .order_by_desc(Column::CreatedAt)
        .order_by_asc(Column::Hash);
    let (rows, total) = page::load_rows(store, found, page).await?;
    let mut keys = Vec::new();
    for row in rows {
        let at = RowRef {
            table: "api_keys",
            id: row.owner_id,
        };
        let owner = KeyOwner {
            kind: at.parse(&row.kind)?,
            id: row.owner_id,
        };
        keys.push((owner, ApiKey::try_from(row)?));
    }
    let names = owner_names(store, keys.iter().map(|(owner, _)| *owner)).await?;
    let listed = keys.into_iter().map(|(owner, key)| ListedKey {
        owner_name: names.get(&owner).cloned().unwrap_or_default(),
        owner,
        key,
    });
    Ok((listed.collect(), total))
}

/// Finds the key with this id (`ApiKey::id`) of an account.
pub async fn find_owned_by_id(
    store: &Store,
    owner: KeyOwner,
    id: &str,
) -> Result<Option<ApiKey>, StoreError> {
    let found = Entity::find()
        .filter(Column::Kind.eq(owner.kind.as_str()))
        .filter(Column::OwnerId.eq(owner.id))
        .all(store.reader())
        .await?;
    let keys: Vec<ApiKey> = found
        .into_iter()
        .map(ApiKey::try_from)
        .collect::<Result<_, _>>()?;
    Ok(keys.into_iter().find(|key| key.id == id))
}

async fn owner_names(
    store: &Store,
    owners: impl Iterator<Item = KeyOwner> + Clone,
) -> Result<HashMap<KeyOwner, String>, StoreError> {
    let ids = |kind: KeyKind| {
        let ids = owners.clone().filter(move |owner| owner.kind == kind);
        ids.map(|owner| owner.id).collect::<Vec<_>>()
    };
    let operators = operator_row::Entity::find()
        .filter(operator_row::Column::Id.is_in(ids(KeyKind::Operator)))
        .all(store.reader())
        .await?;
    let integrators = integrator_row::Entity::find()
        .filter(integrator_row::Column::Id.is_in(ids(KeyKind::Integrator)))
        .all(store.reader())
        .await?;
    let taxpayer_ids: Vec<_> = ids(KeyKind::Taxpayer).into_iter().map(TaxpayerId).collect();
    let taxpayers = taxpayers::find_by_ids(store.reader(), &taxpayer_ids).await?;
    let named = |kind, id, name| (KeyOwner { kind, id }, name);
    let operators = operators
        .into_iter()
        .map(|row| named(KeyKind::Operator, row.id, row.email));
    let integrators = integrators
        .into_iter()
        .map(|row| named(KeyKind::Integrator, row.id, row.name));
    let taxpayers = taxpayers
        .into_iter()
        .map(|(id, taxpayer)| named(KeyKind::Taxpayer, id.0, taxpayer.name.clone()));
    Ok(operators.chain(integrators).chain(taxpayers).collect())
}
