//! A page of a list. It has exactly five fields (spec.md, "Paginated list shape").

use database::page::Page;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Paginator<T> {
    current_page: u64,
    data: Vec<T>,
    total: u64,
    per_page: u64,
    last_page: u64,
}

impl<T> Paginator<T> {
    pub(crate) fn new(page: Page, total: u64, data: Vec<T>) -> Self {
        let last_page = total.div_ceil(page.per_page).max(1);
        Self {
            current_page: page.number,
            data,
            total,
            per_page: page.per_page,
            last_page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_has_one_page() {
        let last = |total| {
            Paginator::<u8>::new(
                Page {
                    number: 1,
                    per_page: 10,
                },
                total,
                vec![],
            )
            .last_page
        };
        assert_eq!([last(0), last(1), last(10), last(11)], [1, 1, 1, 2]);
    }
}
