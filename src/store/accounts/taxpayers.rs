//! Taxpayers and their contact persons. Tax numbers are compared in their normal form only.

use std::collections::HashMap;

use database::column::{RowRef, contains_pattern, fold_case};
use database::page::{self, Page};
use database::{StoreError, Transaction, statement_portions};
use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId, parse_id};
use crate::domain::party::normal_form;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::party::{Contact, Taxpayer};
use crate::store::Store;
use crate::store::accounts::contact_row;
use crate::store::accounts::taxpayer_row::{Column, Entity, Model};

fn owned_by(integrator: IntegratorId) -> Select<Entity> {
    Entity::find().filter(Column::IntegratorId.eq(integrator.0))
}

/// Loads a taxpayer, whichever integrator it belongs to. `find_owned_by_id` checks the owner.
pub async fn find_by_id(
    connection: &impl ConnectionTrait,
    id: TaxpayerId,
) -> Result<Option<Taxpayer>, StoreError> {
    Entity::find_by_id(id.0)
        .one(connection)
        .await?
        .map(Taxpayer::try_from)
        .transpose()
}

/// Loads the taxpayers with these ids. Ids that do not exist are skipped.
pub async fn find_by_ids(
    connection: &impl ConnectionTrait,
    ids: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, Taxpayer>, StoreError> {
    let mut found = HashMap::new();
    for chunk in statement_portions(ids) {
        let chunk = chunk.iter().map(|id| id.0);
        let rows = Entity::find()
            .filter(Column::Id.is_in(chunk))
            .all(connection)
            .await?;
        for row in rows {
            found.insert(TaxpayerId(row.id), Taxpayer::try_from(row)?);
        }
    }
    Ok(found)
}

/// Returns the integrator of a taxpayer. Reads it from the database only once for each taxpayer, because it never
/// changes.
pub async fn load_payer(store: &Store, id: TaxpayerId) -> Result<Option<IntegratorId>, StoreError> {
    if let Some(payer) = store.payers().find(id) {
        return Ok(Some(payer));
    }
    let found = Entity::find_by_id(id.0)
        .select_only()
        .column(Column::IntegratorId);
    let payer = found
        .into_tuple()
        .one(store.reader())
        .await?
        .map(IntegratorId);
    if let Some(payer) = payer {
        store.payers().keep(id, payer);
    }
    Ok(payer)
}

pub async fn find_owned_by_id(
    store: &Store,
    integrator: IntegratorId,
    id: TaxpayerId,
) -> Result<Option<Taxpayer>, StoreError> {
    let found = owned_by(integrator)
        .filter(Column::Id.eq(id.0))
        .one(store.reader())
        .await?;
    found.map(Taxpayer::try_from).transpose()
}

pub async fn find_owned_by_business_id(
    store: &Store,
    integrator: IntegratorId,
    business_id: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let same = Column::BusinessIdKey.eq(fold_case(business_id));
    owned_by(integrator)
        .filter(same)
        .one(store.reader())
        .await?
        .map(Taxpayer::try_from)
        .transpose()
}

pub async fn find_owned_by_service_id(
    store: &Store,
    integrator: IntegratorId,
    service_id: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let same = Column::ServiceIdKey.eq(fold_case(service_id));
    owned_by(integrator)
        .filter(same)
        .one(store.reader())
        .await?
        .map(Taxpayer::try_from)
        .transpose()
}

pub async fn find_owned_by_tin(
    store: &Store,
    integrator: IntegratorId,
    tin: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let Some(normal) = normal_form::normal_tin(tin) else {
        return Ok(None);
    };
    let same = Column::TinNormal.eq(normal);
    owned_by(integrator)
        .filter(same)
        .one(store.reader())
        .await?
        .map(Taxpayer::try_from)
        .transpose()
}

/// Finds a taxpayer, of whichever integrator, by the service id that the authority assigned.
pub async fn find_by_service_id(
    store: &Store,
    service_id: &str,
) -> Result<Option<TaxpayerId>, StoreError> {
    let same = Column::ServiceIdKey.eq(fold_case(service_id));
    Ok(Entity::find()
        .filter(same)
        .one(store.reader())
        .await?
        .map(|row| TaxpayerId(row.id)))
}

/// Finds a taxpayer, of whichever integrator, by its tax number in any spelling.
pub async fn find_by_tin(store: &Store, tin: &str) -> Result<Option<Taxpayer>, StoreError> {
    let Some(normal) = normal_form::normal_tin(tin) else {
        return Ok(None);
    };
    let same = Column::TinNormal.eq(normal);
    Entity::find()
        .filter(same)
        .one(store.reader())
        .await?
        .map(Taxpayer::try_from)
        .transpose()
}

/// Loads a page of an integrator's taxpayers, newest first, and the number of all matches. With `search`, only
/// taxpayers that have this text in name, tax number or email match.
pub async fn page_owned_by(
    store: &Store,
    integrator: IntegratorId,
    search: Option<&str>,
    page: Page,
) -> Result<(Vec<Taxpayer>, u64), StoreError> {
    let found = owned_by(integrator).filter(search_text_condition(search));
    page::load(store, found.order_by_desc(Column::Id), page).await
}

/// Counts the taxpayers of an integrator.
pub async fn count_owned_by(store: &Store, integrator: IntegratorId) -> Result<u64, StoreError> {
    Ok(owned_by(integrator).count(store.reader()).await?)
}

fn search_text_condition(search: Option<&str>) -> Condition {
    let text = search
        .map(normal_form::fold_for_search)
        .filter(|text| !text.is_empty());
    Condition::all()
        .add_option(text.map(|text| Expr::col(Column::SearchText).like(contains_pattern(&text))))
}

fn search_text_or_id_condition(text: &str) -> Condition {
    let tin = normal_form::normal_tin(text);
    let id = parse_id(text);
    Condition::any()
        .add(search_text_condition(Some(text)))
        .add_option(tin.map(|tin| Column::TinNormal.eq(tin)))
        .add_option(id.map(|id| Column::Id.eq(id)))
}

pub async fn contacts_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<Vec<Contact>, StoreError> {
    let rows = contact_row::Entity::find()
        .filter(contact_row::Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(contact_row::Column::Id)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Contact::try_from).collect()
}

/// Loads the contact persons of each of these taxpayers, ordered by id. A taxpayer without contact persons is left out.
pub async fn contacts_owned_by_each(
    store: &Store,
    taxpayers: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, Vec<Contact>>, StoreError> {
    let taxpayers = taxpayers.iter().map(|id| id.0);
    let rows = contact_row::Entity::find()
        .filter(contact_row::Column::TaxpayerId.is_in(taxpayers))
        .order_by_asc(contact_row::Column::Id)
        .all(store.reader())
        .await?;
    let mut contacts: HashMap<TaxpayerId, Vec<Contact>> = HashMap::new();
    for row in rows {
        contacts
            .entry(TaxpayerId(row.taxpayer_id))
            .or_default()
            .push(Contact::try_from(row)?);
    }
    Ok(contacts)
}

/// Adds a taxpayer and its first contact person.
pub async fn add(
    tx: &Transaction,
    taxpayer: &Taxpayer,
    person: contact_row::Model,
) -> Result<(), StoreError> {
    Entity::insert(Model::from(taxpayer).into_active_model())
        .exec_without_returning(tx)
        .await?;
    contact_row::Entity::insert(person.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Updates a stored taxpayer.
pub async fn save(tx: &Transaction, taxpayer: &Taxpayer) -> Result<(), StoreError> {
    let mut row = Model::from(taxpayer).into_active_model().reset_all();
    // The stored skeleton stays: a tax number never changes, and some older taxpayers have an empty skeleton on purpose
    // (see `taxpayer_row`).
    row.tin_skeleton = NotSet;
    Entity::update(row).exec(tx).await?;
    Ok(())
}

/// The filter of the operators' list of taxpayers. A field that is `None` does not filter.
#[derive(Debug, Default)]
pub struct TaxpayerFilter {
    pub verification: Option<VerificationStatus>,
    /// Only taxpayers with this tax number, in any spelling.
    pub tin: Option<String>,
    /// Only taxpayers with this text in name, tax number or email, or with this id or tax number in any spelling.
    pub search: Option<String>,
}

/// Loads one page of the matching taxpayers of all integrators, newest first, and the number of all matches.
pub async fn page(
    store: &Store,
    filter: TaxpayerFilter,
    page: Page,
) -> Result<(Vec<Taxpayer>, u64), StoreError> {
    let status = filter
        .verification
        .map(|status| Column::Verification.eq(status.as_str()));
    let tin = filter
        .tin
        .map(|tin| Column::TinNormal.eq(normal_form::normal_tin(&tin).unwrap_or(tin)));
    let sought = filter.search.as_deref().map(search_text_or_id_condition);
    let found = Entity::find().filter(
        Condition::all()
            .add_option(status)
            .add_option(tin)
            .add_option(sought),
    );
    page::load(store, found.order_by_desc(Column::Id), page).await
}

pub async fn count_by_verification(
    store: &Store,
) -> Result<Vec<(VerificationStatus, i64)>, StoreError> {
    let rows: Vec<(String, i64)> = Entity::find()
        .select_only()
        .column(Column::Verification)
        .column_as(Column::Id.count(), "taxpayers")
        .group_by(Column::Verification)
        .into_tuple()
        .all(store.reader())
        .await?;
    let at = RowRef {
        table: "taxpayers",
        id: "verification",
    };
    rows.into_iter()
        .map(|(status, count)| Ok((at.parse(&status)?, count)))
        .collect()
}

/// Loads up to `limit` taxpayer ids greater than `after`, in ascending order.
pub async fn ids_after(
    store: &Store,
    after: TaxpayerId,
    limit: u64,
) -> Result<Vec<TaxpayerId>, StoreError> {
    let ids: Vec<i64> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.gt(after.0))
        .order_by_asc(Column::Id)
        .limit(limit)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(ids.into_iter().map(TaxpayerId).collect())
}

pub async fn all_ids(store: &Store) -> Result<Vec<TaxpayerId>, StoreError> {
    let ids: Vec<i64> = Entity::find()
        .select_only()
        .column(Column::Id)
        .order_by_asc(Column::Id)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(ids.into_iter().map(TaxpayerId).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{TestStore, stores};

    /// Adds taxpayers with these ids and tax numbers by SQL.
    async fn insert(test: &TestStore, rows: &[(i64, &str)]) -> Result<(), StoreError> {
        let tx = test.store.begin().await?;
        for (id, tin) in rows {
            let normal = normal_form::normal_tin(tin).unwrap_or_default();
            let sql = format!(
                "INSERT INTO taxpayers (id, integrator_id, name, email, email_key, tin, tin_normal, \
                 service_id, service_id_key, business_id, business_id_key, address, subscription, created_at, updated_at) \
                 VALUES ({id}, 1, 'n', 'e{id}', 'e{id}', '{tin}', '{normal}', 's{id}', 's{id}', 'b{id}', \
                 'b{id}', '', 'active', 0, 0)"
            );
            tx.execute_unprepared(&sql).await?;
        }
        tx.commit().await
    }

    #[tokio::test]
    async fn a_tax_number_in_any_spelling_finds_its_taxpayer() {
        for test in stores().await {
            insert(&test, &[(1, "55555555-0001"), (2, "77777777-0001")])
                .await
                .unwrap();
            let find_by_tin = async |tin| {
                find_by_tin(&test.store, tin)
                    .await
                    .unwrap()
                    .map(|found| found.id)
            };
            for spelling in ["555555550001", "55555555-0001", "5555 5555\u{2013}0001"] {
                assert_eq!(
                    find_by_tin(spelling).await,
                    Some(TaxpayerId(1)),
                    "{spelling}"
                );
            }
            assert_eq!(find_by_tin("7777 7777 0001").await, Some(TaxpayerId(2)));
            for unknown in ["-", "77777777-0002"] {
                assert_eq!(find_by_tin(unknown).await, None, "{unknown}");
            }
        }
    }

    #[tokio::test]
    async fn operators_search_by_name_id_and_tax_number() {
        for test in stores().await {
            insert(
                &test,
                &[
                    (1, "55555555-0001"),
                    (2, "77777777-0001"),
                    (30, "88888888-0001"),
                ],
            )
            .await
            .unwrap();
            for id in [1, 2, 30] {
                let one = find_by_id(test.store.reader(), TaxpayerId(id))
                    .await
                    .unwrap()
                    .unwrap();
                let tx = test.store.begin().await.unwrap();
                save(
                    &tx,
                    &Taxpayer {
                        name: format!("Shop {id}"),
                        ..one
                    },
                )
                .await
                .unwrap();
                tx.commit().await.unwrap();
            }
            for (text, ids) in [
                ("shop", vec![30, 2, 1]),
                ("SHOP 3", vec![30]),
                ("30", vec![30]),
                ("7777 7777\u{2013}0001", vec![2]),
                ("5555", vec![1]),
                ("nobody", vec![]),
                ("%", vec![]),
            ] {
                let filter = TaxpayerFilter {
                    search: Some(text.to_owned()),
                    ..TaxpayerFilter::default()
                };
                let (found, total) = page(
                    &test.store,
                    filter,
                    Page {
                        number: 1,
                        per_page: 9,
                    },
                )
                .await
                .unwrap();
                assert_eq!(
                    found.iter().map(|one| one.id.0).collect::<Vec<_>>(),
                    ids,
                    "{text}"
                );
                assert_eq!(usize::try_from(total).unwrap(), ids.len());
            }
        }
    }

    #[tokio::test]
    async fn a_change_is_found_by_search() {
        for test in stores().await {
            let store = &test.store;
            insert(&test, &[(1, "55555555-0001"), (2, "77777777-0001")])
                .await
                .unwrap();
            let one = find_by_id(store.reader(), TaxpayerId(1))
                .await
                .unwrap()
                .unwrap();
            let tx = store.begin().await.unwrap();
            save(
                &tx,
                &Taxpayer {
                    name: "Ọláwálé".into(),
                    ..one
                },
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
            for text in ["ỌLÁWÁLÉ", "ọlá", "E1"] {
                let page = Page {
                    number: 1,
                    per_page: 9,
                };
                let (found, _) = page_owned_by(store, IntegratorId(1), Some(text), page)
                    .await
                    .unwrap();
                assert_eq!(
                    found.iter().map(|one| one.id).collect::<Vec<_>>(),
                    [TaxpayerId(1)],
                    "{text}"
                );
            }
        }
    }

    #[tokio::test]
    async fn the_database_refuses_a_second_taxpayer_with_the_same_normal_form() {
        for test in stores().await {
            insert(&test, &[(1, "t-1")]).await.unwrap();
            let refused = insert(&test, &[(2, "T1")]).await.unwrap_err();
            assert!(matches!(refused, StoreError::Duplicate(_)), "{refused}");
        }
    }
}
