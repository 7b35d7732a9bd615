//! Invoices and their payment ledger.

use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::codes::UniqueNoType;
use crate::domain::ids::{InvoiceId, TaxpayerId};
use crate::domain::invoice::Invoice;
use crate::domain::irn::Irn;
use crate::store::database::{ROWS_PER_STATEMENT, Store};
use crate::store::entity::invoice::{Column, Entity, Model};
use crate::store::entity::payment_entry;
use crate::store::failure::StoreError;

/// Names of invoices, of which any may match.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub ids: Vec<i64>,
    pub numbers: Vec<String>,
    pub irn_keys: Vec<String>,
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.numbers.is_empty() && self.irn_keys.is_empty()
    }

    /// Adds a `unique_no`; `None` when no invoice can have it.
    pub fn add(&mut self, kind: UniqueNoType, text: &str) -> Option<()> {
        match kind {
            UniqueNoType::PortalId => self.ids.push(text.parse().ok()?),
            UniqueNoType::Irn => self.irn_keys.push(Irn::parse(text).ok()?.key()),
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => {
                self.numbers.push(text.to_owned());
            }
        }
        Some(())
    }
}

fn owned_by(taxpayer: TaxpayerId) -> Select<Entity> {
    Entity::find().filter(Column::TaxpayerId.eq(taxpayer.0))
}

/// The invoices of a taxpayer that have any of these names.
pub async fn owned_by_with_names(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    names: Names,
) -> Result<Vec<Invoice>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut any = Condition::any();
    if !names.ids.is_empty() {
        any = any.add(Column::Id.is_in(names.ids));
    }
    if !names.numbers.is_empty() {
        any = any.add(Column::InvoiceNo.is_in(names.numbers));
    }
    if !names.irn_keys.is_empty() {
        any = any.add(Column::IrnKey.is_in(names.irn_keys));
    }
    let rows = owned_by(taxpayer).filter(any).all(connection).await?;
    rows.into_iter().map(Invoice::try_from).collect()
}

/// One invoice by a `unique_no`.
pub async fn owned_by_with_unique_no(
    store: &Store,
    taxpayer: TaxpayerId,
    kind: UniqueNoType,
    text: &str,
) -> Result<Option<Invoice>, StoreError> {
    let mut names = Names::default();
    if names.add(kind, text).is_none() {
        return Ok(None);
    }
    Ok(owned_by_with_names(store.reader(), taxpayer, names).await?.pop())
}

pub async fn owned_by_with_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: InvoiceId,
) -> Result<Option<Invoice>, StoreError> {
    owned_by(taxpayer)
        .filter(Column::Id.eq(id.0))
        .one(store.reader())
        .await?
        .map(Invoice::try_from)
        .transpose()
}

/// A page of a taxpayer's invoices, newest first, and how many there are in all.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    page: u64,
    per_page: u64,
) -> Result<(Vec<Invoice>, u64), StoreError> {
    let total = owned_by(taxpayer).count(store.reader()).await?;
    let rows = owned_by(taxpayer)
        .order_by_desc(Column::CreatedAt)
        .order_by_desc(Column::Id)
        .offset(page.saturating_sub(1).saturating_mul(per_page))
        .limit(per_page)
        .all(store.reader())
        .await?;
    Ok((rows.into_iter().map(Invoice::try_from).collect::<Result<_, _>>()?, total))
}

/// Writes invoices as they are now, new and changed ones alike.
pub async fn save(tx: &DatabaseTransaction, invoices: &[&Invoice]) -> Result<(), StoreError> {
    for chunk in invoices.chunks(ROWS_PER_STATEMENT) {
        let rows = chunk.iter().map(|invoice| Model::from(*invoice).into_active_model());
        Entity::insert_many(rows)
            .on_conflict(
                OnConflict::columns([Column::TaxpayerId, Column::Id]).update_columns(CHANGING).to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}

/// The columns an update may change; the others are what the invoice is known by.
const CHANGING: [Column; 18] = [
    Column::Category,
    Column::InvoiceType,
    Column::InvoiceDate,
    Column::DueDate,
    Column::Currency,
    Column::Customer,
    Column::Lines,
    Column::Status,
    Column::PaymentStatus,
    Column::Payable,
    Column::Paid,
    Column::AuthorityStatus,
    Column::QrCode,
    Column::Signed,
    Column::BatchNo,
    Column::Extras,
    Column::UpdatedAt,
    Column::EditedAt,
];

/// Adds entries to the payment ledger.
pub async fn post(tx: &DatabaseTransaction, entries: &[payment_entry::Model]) -> Result<(), StoreError> {
    for chunk in entries.chunks(ROWS_PER_STATEMENT) {
        let rows = chunk.iter().cloned().map(IntoActiveModel::into_active_model);
        payment_entry::Entity::insert_many(rows).exec_without_returning(tx).await?;
    }
    Ok(())
}
