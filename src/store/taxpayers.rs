//! Taxpayers and their contact persons.

use std::collections::HashMap;

use sea_orm::sea_query::{Expr, ExprTrait, Func};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::fault::{Fault, Faults};
use crate::domain::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::{Contact, Taxpayer};
use crate::domain::supplier_invoice::plain_tin;
use crate::store::database::Store;
use crate::store::entity::column::{caseless, contains};
use crate::store::entity::contact;
use crate::store::entity::taxpayer::{Column, Entity, Model};
use crate::store::failure::StoreError;

/// A tax number without its separators, in the words of the index `taxpayers_by_plain_tin`.
const PLAIN_TIN: &str = "REPLACE(REPLACE(REPLACE(REPLACE(tin_key, '-', ''), ' ', ''), '.', ''), '/', '')";

fn owned_by(integrator: IntegratorId) -> Select<Entity> {
    Entity::find().filter(Column::IntegratorId.eq(integrator.0))
}

/// A taxpayer for its own sake: its actor's, or its own key's.
pub async fn with_id(
    connection: &impl ConnectionTrait,
    id: TaxpayerId,
) -> Result<Option<Taxpayer>, StoreError> {
    Entity::find_by_id(id.0).one(connection).await?.map(Taxpayer::try_from).transpose()
}

pub async fn owned_by_with_id(
    store: &Store,
    integrator: IntegratorId,
    id: TaxpayerId,
) -> Result<Option<Taxpayer>, StoreError> {
    let found = owned_by(integrator).filter(Column::Id.eq(id.0)).one(store.reader()).await?;
    found.map(Taxpayer::try_from).transpose()
}

pub async fn owned_by_with_business_id(
    store: &Store,
    integrator: IntegratorId,
    business_id: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let same = Column::BusinessIdKey.eq(caseless(business_id));
    owned_by(integrator).filter(same).one(store.reader()).await?.map(Taxpayer::try_from).transpose()
}

pub async fn owned_by_with_service_id(
    store: &Store,
    integrator: IntegratorId,
    service_id: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let same = Column::ServiceIdKey.eq(caseless(service_id));
    owned_by(integrator).filter(same).one(store.reader()).await?.map(Taxpayer::try_from).transpose()
}

pub async fn owned_by_with_tin(
    store: &Store,
    integrator: IntegratorId,
    tin: &str,
) -> Result<Option<Taxpayer>, StoreError> {
    let same = Column::TinKey.eq(caseless(tin));
    owned_by(integrator).filter(same).one(store.reader()).await?.map(Taxpayer::try_from).transpose()
}

/// The taxpayer to whom the authority gave a service id, whoever onboarded it.
pub async fn with_service_id(store: &Store, service_id: &str) -> Result<Option<TaxpayerId>, StoreError> {
    let same = Column::ServiceIdKey.eq(caseless(service_id));
    Ok(Entity::find().filter(same).one(store.reader()).await?.map(|row| TaxpayerId(row.id)))
}

/// The taxpayer whom a tax number on a document means: as it is written, else with other separators. Where those
/// would fit several, none is meant: an invoice must not go to a stranger.
pub async fn with_tin(store: &Store, tin: &str) -> Result<Option<TaxpayerId>, StoreError> {
    let same = Column::TinKey.eq(caseless(tin));
    if let Some(row) = Entity::find().filter(same).one(store.reader()).await? {
        return Ok(Some(TaxpayerId(row.id)));
    }
    let Some(plain) = plain_tin(tin) else { return Ok(None) };
    let similar = Entity::find().filter(Expr::cust(PLAIN_TIN).eq(plain)).limit(2);
    let found = similar.all(store.reader()).await?;
    Ok(if let [row] = found.as_slice() { Some(TaxpayerId(row.id)) } else { None })
}

/// A page of an integrator's taxpayers, newest first, whose name, TIN or email contains a text.
pub async fn page_owned_by(
    store: &Store,
    integrator: IntegratorId,
    search: Option<&str>,
    page: u64,
    per_page: u64,
) -> Result<(Vec<Taxpayer>, u64), StoreError> {
    let found = owned_by(integrator).filter(matching(search));
    let total = found.clone().count(store.reader()).await?;
    let rows = found
        .order_by_desc(Column::Id)
        .offset(page.saturating_sub(1).saturating_mul(per_page))
        .limit(per_page)
        .all(store.reader())
        .await?;
    Ok((rows.into_iter().map(Taxpayer::try_from).collect::<Result<_, _>>()?, total))
}

fn matching(search: Option<&str>) -> Condition {
    let Some(text) = search.map(str::trim).filter(|text| !text.is_empty()) else { return Condition::all() };
    let like = || contains(&caseless(text));
    Condition::any()
        .add(Expr::expr(Func::lower(Expr::col(Column::Name))).like(like()))
        .add(Expr::col(Column::TinKey).like(like()))
        .add(Expr::col(Column::EmailKey).like(like()))
}

pub async fn contacts_of(store: &Store, taxpayer: TaxpayerId) -> Result<Vec<Contact>, StoreError> {
    let rows = contact::Entity::find()
        .filter(contact::Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(contact::Column::Id)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Contact::try_from).collect()
}

/// The contact persons of several taxpayers, by taxpayer.
pub async fn contacts_of_each(
    store: &Store,
    taxpayers: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, Vec<Contact>>, StoreError> {
    let rows = contact::Entity::find()
        .filter(contact::Column::TaxpayerId.is_in(taxpayers.iter().map(|id| id.0)))
        .order_by_asc(contact::Column::Id)
        .all(store.reader())
        .await?;
    let mut contacts: HashMap<TaxpayerId, Vec<Contact>> = HashMap::new();
    for row in rows {
        contacts.entry(TaxpayerId(row.taxpayer_id)).or_default().push(Contact::try_from(row)?);
    }
    Ok(contacts)
}

/// What another taxpayer has already, as faults of Create Taxpayer's fields.
pub async fn taken(
    tx: &DatabaseTransaction,
    taxpayer: &Taxpayer,
    login: Option<&str>,
) -> Result<Faults, StoreError> {
    let row = Model::from(taxpayer);
    let unique = [
        ("email", Column::EmailKey, &row.email_key),
        ("tin_no", Column::TinKey, &row.tin_key),
        ("authority_service_id", Column::ServiceIdKey, &row.service_id_key),
        ("authority_business_id", Column::BusinessIdKey, &row.business_id_key),
    ];
    let mut any = Condition::any();
    for (_, column, value) in &unique {
        any = any.add(column.eq(value.as_str()));
    }
    let others = Entity::find().filter(Column::Id.ne(row.id)).filter(any).all(tx).await?;
    let mut faults = Faults::default();
    for (field, column, value) in unique {
        let has = |other: &Model| match column {
            Column::EmailKey => &other.email_key == value,
            Column::TinKey => &other.tin_key == value,
            Column::ServiceIdKey => &other.service_id_key == value,
            _ => &other.business_id_key == value,
        };
        if others.iter().any(has) {
            faults.push(taken_fault(field));
        }
    }
    if let Some(login) = login {
        let same = contact::Column::EmailKey.eq(caseless(login));
        if contact::Entity::find().filter(same).one(tx).await?.is_some() {
            faults.push(taken_fault("contact_person.email"));
        }
    }
    Ok(faults)
}

fn taken_fault(field: &str) -> Fault {
    Fault::new(field, "unique", format!("The {field} has already been taken."))
}

/// Adds a taxpayer with its contact person.
pub async fn add(
    tx: &DatabaseTransaction,
    taxpayer: &Taxpayer,
    person: contact::Model,
) -> Result<(), StoreError> {
    Entity::insert(Model::from(taxpayer).into_active_model()).exec_without_returning(tx).await?;
    contact::Entity::insert(person.into_active_model()).exec_without_returning(tx).await?;
    Ok(())
}

/// Writes a taxpayer as it is now.
pub async fn save(tx: &DatabaseTransaction, taxpayer: &Taxpayer) -> Result<(), StoreError> {
    let row = Model::from(taxpayer).into_active_model().reset_all();
    Entity::update(row).exec(tx).await?;
    Ok(())
}

/// Every taxpayer there is, for the audit.
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
