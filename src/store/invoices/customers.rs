//! Finders of the customers of a taxpayer, for pages and exports.

use std::collections::BTreeSet;

use database::StoreError;
use database::column::{contains_pattern, fold_case};
use database::page::{self, Page};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect as _,
};

use crate::domain::kernel::ids::{CustomerId, TaxpayerId};
use crate::domain::party::{Customer, normal_form};
use crate::store::Store;
use crate::store::invoices::customer_row::{Column, Entity};

pub async fn find_owned_by_id(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    id: CustomerId,
) -> Result<Option<Customer>, StoreError> {
    let row = Entity::find_by_id((taxpayer.0, id.0))
        .one(connection)
        .await?;
    row.map(Customer::try_from).transpose()
}

/// Finds the customer of a taxpayer that has this number.
pub async fn find_owned_by_no(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    no: &str,
) -> Result<Option<Customer>, StoreError> {
    let row = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::No.eq(no))
        .order_by_asc(Column::Id)
        .one(connection)
        .await?;
    row.map(Customer::try_from).transpose()
}

/// Loads the customers of a taxpayer that have one of these ids.
pub async fn find_owned_by_ids(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    ids: impl IntoIterator<Item = CustomerId>,
) -> Result<Vec<Customer>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Id.is_in(ids.into_iter().map(|id| id.0)))
        .all(connection)
        .await?;
    rows.into_iter().map(Customer::try_from).collect()
}

/// Loads the first customers of a taxpayer in the order of their names, `max` at most.
pub async fn first_owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<Vec<Customer>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(Column::SearchText)
        .limit(max)
        .all(connection)
        .await?;
    rows.into_iter().map(Customer::try_from).collect()
}

/// Loads a page of the customers of a taxpayer, ordered by name, and the number of all matches. With `search`, only
/// customers that have this text in name, number or TIN match.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    search: Option<&str>,
    page: Page,
) -> Result<(Vec<Customer>, u64), StoreError> {
    let mut found = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .order_by_asc(Column::SearchText)
        .order_by_asc(Column::Id);
    if let Some(text) = search {
        found = found.filter(search_condition(&Expr::col(Column::SearchText), text));
    }
    page::load(store, found, page).await
}

/// Returns the condition that the search text of an invoice or a customer contains this text, in any case and Unicode
/// encoding. In rows that former versions wrote, the search text is only in lower case and keeps its original encoding.
/// In those that a migration filled on SQLite, only the ASCII letters are in lower case.
pub(super) fn search_condition(search_text: &Expr, text: &str) -> Condition {
    let written = text.trim().to_ascii_lowercase();
    let forms = BTreeSet::from([normal_form::fold_for_search(text), fold_case(text), written]);
    forms.iter().fold(Condition::any(), |any, form| {
        any.add(search_text.clone().like(contains_pattern(form)))
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::codes::Category;
    use crate::domain::party::{Address, CustomerDetails};
    use crate::store::invoices::customers_and_items::save_customers;
    use crate::store::testing::stores;

    const OWN: TaxpayerId = TaxpayerId(7);

    fn new_customer(id: i64, name: &str) -> Customer {
        Customer {
            id: CustomerId(id),
            category: Category::B2C,
            details: CustomerDetails {
                no: format!("C-{id}"),
                name: name.to_owned(),
                email: "c@example.com".to_owned(),
                tin: None,
                business_description: None,
                address: Address::default(),
                telephone: None,
            },
        }
    }

    #[tokio::test]
    async fn a_customer_is_found_in_any_case_and_encoding() {
        type Fold = fn(&str) -> String;
        // The name, the search text of its row if a former version wrote it, and the text that somebody types.
        const SEARCHES: [(&str, Option<Fold>, &str); 8] = [
            ("Adébáyọ̀ Ltd", None, "ADÉBÁYỌ̀"),
            ("Ade\u{301}bayo", None, "ad\u{e9}bay"),
            ("Ad\u{e9}mola", None, "ADE\u{301}M"),
            ("\u{d2}\u{323}\u{1e63}un", None, "\u{1ecc}\u{300}s\u{323}"),
            ("Stra\u{df}e 9", None, "STRASSE"),
            ("Ke\u{301}hinde", Some(fold_case), "KE\u{301}H"),
            ("T\u{e1}y\u{f2}", Some(fold_case), "t\u{e1}Y\u{f2}"),
            (
                "\u{1e62}ade Ltd",
                Some(str::to_ascii_lowercase),
                "\u{1e62}ADE",
            ),
        ];
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            for (id, (name, former, _)) in (1..).zip(SEARCHES) {
                let customer = new_customer(id, name);
                let saved = save_customers(&tx, &[(OWN, &customer)], Timestamp::UNIX_EPOCH).await;
                saved.unwrap();
                if let Some(fold) = former {
                    let text = fold(name);
                    let sql =
                        format!("UPDATE customers SET search_text = '{text}' WHERE id = {id}");
                    tx.execute_unprepared(&sql).await.unwrap();
                }
            }
            tx.commit().await.unwrap();
            for (id, (name, _, typed)) in (1..).zip(SEARCHES) {
                let page = Page {
                    number: 1,
                    per_page: 10,
                };
                let found = page_owned_by(&test.store, OWN, Some(typed), page).await;
                let (found, total) = found.unwrap();
                let ids: Vec<_> = found.iter().map(|customer| customer.id).collect();
                assert_eq!((ids, total), (vec![CustomerId(id)], 1), "{name} {typed}");
            }
            test.store.close().await;
        }
    }
}
