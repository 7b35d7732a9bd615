//! Pages of a list, and the functions that load one page.

use sea_orm::{EntityTrait, FromQueryResult, PaginatorTrait, QuerySelect, Select};

use crate::database::Database;
use crate::error::StoreError;

/// The largest offset of a page. The databases add the page's size to it, and the sum must fit into 64 bits with a
/// sign.
const OFFSET_MAX: u64 = i64::MAX as u64 / 2;

/// The number and the size of a page of a list. Pages are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub number: u64,
    pub per_page: u64,
}

impl Page {
    pub fn offset(self) -> u64 {
        let rows_before = self.number.saturating_sub(1).saturating_mul(self.per_page);
        rows_before.min(OFFSET_MAX)
    }
}

/// Loads one page of the selected rows and converts the rows. Also returns the number of rows on all pages.
pub async fn load<E, T>(
    database: &Database,
    select: Select<E>,
    page: Page,
) -> Result<(Vec<T>, u64), StoreError>
where
    E: EntityTrait,
    E::Model: FromQueryResult + Send + Sync,
    T: TryFrom<E::Model, Error = StoreError>,
{
    let (rows, total) = load_rows(database, select, page).await?;
    Ok((
        rows.into_iter()
            .map(T::try_from)
            .collect::<Result<_, _>>()?,
        total,
    ))
}

/// Loads one page of the selected rows. Also returns the number of rows on all pages.
pub async fn load_rows<E>(
    database: &Database,
    select: Select<E>,
    page: Page,
) -> Result<(Vec<E::Model>, u64), StoreError>
where
    E: EntityTrait,
    E::Model: FromQueryResult + Send + Sync,
{
    let total = select.clone().count(database.reader()).await?;
    let rows = select
        .offset(page.offset())
        .limit(page.per_page)
        .all(database.reader())
        .await?;
    Ok((rows, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_before_a_page_are_a_number_that_databases_count_to() {
        for (number, per_page, rows) in [
            (0, 50, 0),
            (1, 50, 0),
            (3, 50, 100),
            (u64::MAX, 1, OFFSET_MAX),
            (u64::MAX, 100, OFFSET_MAX),
        ] {
            let page = Page { number, per_page };
            assert_eq!(page.offset(), rows, "{page:?}");
        }
    }
}
