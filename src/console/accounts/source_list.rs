//! The list from which the page of an invoice was opened. The addresses of the page and of its forms carry the query of
//! the list in one parameter, so that the page leads back to the list, and Previous and Next follow it.

use actix_web::{HttpRequest, HttpResponse};
use jiff::civil::Date;
use url::form_urlencoded::Serializer;

use crate::console::accounts::list_filters::{self, list_query};
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::FormValues;
use crate::console::page::go_to;
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageFields, PageStart,
};

/// The parameter with the query of the list.
const PARAMETER: &str = "list";
/// The maximum length of the query. Some proxies refuse longer addresses.
const QUERY_BYTES_MAX: usize = 1_000;
/// The invoices of a filtered list are counted up to this number.
const COUNTED_MAX: u64 = 10_001;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceList {
    /// The filters, the order and the page; empty for the first page of all invoices.
    query: String,
    filters: InvoiceFilter,
    sort: InvoiceSort,
}

/// The invoices that stand beside an invoice in a list; `None` at the ends of the list.
pub(super) struct Neighbours {
    pub(super) previous: Option<InvoiceId>,
    pub(super) next: Option<InvoiceId>,
}

impl SourceList {
    /// Returns the list that the address of a request names.
    pub(super) fn from_request(request: &HttpRequest, state: &ApiState) -> Self {
        let address = Query::from_text(request.query_string());
        let named = Query::from_text(address.text(PARAMETER).unwrap_or_default());
        Self::from_query(&named, state.today(), &state.catalog.get())
    }

    /// Returns the list that this query asks for. The list is that of all invoices if the query cannot be read or is
    /// too long. Parameters that the list does not know are left out.
    pub(super) fn from_query(query: &Query, today: Date, catalog: &Catalog) -> Self {
        let Ok(list_request) = list_filters::read_list_query(query, today, catalog) else {
            return Self::default();
        };
        let mut text = list_query(&FormValues::from(query), &[]);
        if list_request.page.number > 1 {
            let separator = if text.is_empty() { "?" } else { "&" };
            text = format!("{text}{separator}page={}", list_request.page.number);
        }
        if text.len() > QUERY_BYTES_MAX {
            return Self::default();
        }
        Self {
            query: text.trim_start_matches('?').to_owned(),
            filters: list_request.filters,
            sort: list_request.sort,
        }
    }

    /// Returns the address of this list: `path`, which is the path of every list of invoices, and the query.
    pub(super) fn address(&self, path: &str) -> String {
        if self.query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", self.query)
        }
    }

    /// Returns the label of the link to the list.
    pub(super) fn link_label(&self) -> &'static str {
        if self.query.is_empty() {
            "Invoices"
        } else {
            "Back to the list"
        }
    }

    /// Returns the query with which the addresses of an invoice's pages and forms end, with its question mark; empty
    /// for the first page of all invoices.
    pub(super) fn suffix(&self) -> String {
        if self.query.is_empty() {
            return String::new();
        }
        let mut pairs = Serializer::new(String::new());
        pairs.append_pair(PARAMETER, &self.query);
        format!("?{}", pairs.finish())
    }

    /// Leads to the page of an invoice after an act on it.
    pub(super) fn go_to_invoice(
        &self,
        session: &AccountSession,
        invoice: InvoiceId,
        notice: &str,
    ) -> HttpResponse {
        let address = format!("{}/invoices/{invoice}", base_path(session));
        go_to(&format!("{address}{}", self.suffix()), notice)
    }

    /// Returns the invoices that stand beside this one in the list. This one need not be in the list any more, for
    /// example after an act that changed its status.
    pub(super) async fn find_neighbours(
        &self,
        state: &ApiState,
        invoice: &Invoice,
    ) -> Result<Neighbours, ApiError> {
        let store = &state.store;
        let list = InvoiceList {
            taxpayer: invoice.taxpayer_id,
            filters: self.filters.clone(),
            sort: self.sort,
        };
        // A filtered list is searched in different ways if it has few or many invoices, so they are counted. A list
        // without filters is always searched in the same way.
        let total = if self.filters == InvoiceFilter::default() {
            u64::MAX
        } else {
            list.count_up_to(store, COUNTED_MAX).await?
        };
        let backwards = InvoiceList {
            sort: InvoiceSort {
                is_descending: !list.sort.is_descending,
                ..list.sort
            },
            ..list.clone()
        };
        Ok(Neighbours {
            previous: find_next(store, &backwards, invoice, total).await?,
            next: find_next(store, &list, invoice, total).await?,
        })
    }
}

/// Returns the invoice that comes next after this one in the list; `None` if there is none. `total` is the number of
/// all invoices in the list.
async fn find_next(
    store: &Store,
    list: &InvoiceList,
    invoice: &Invoice,
    total: u64,
) -> Result<Option<InvoiceId>, ApiError> {
    let part = PageBounds {
        start: PageStart::After(list.sort.place(invoice)),
        limit: 1,
    };
    let page = list
        .page_with_known_total(store, part, total, PageFields::Shown)
        .await?;
    Ok(page.invoices.first().map(|found| found.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::testing::catalog;

    const TODAY: Date = Date::constant(2026, 3, 1);

    #[test]
    fn the_addresses_of_an_invoice_carry_only_what_the_list_knows() {
        let long = format!("batch_no={}", "b".repeat(1_000));
        for (query, list, suffix) in [
            ("", "/list", ""),
            ("page=1&q=+&evil=1", "/list", ""),
            ("page=3", "/list?page=3", "?list=page%3D3"),
            (
                "page=2&status=draft&next=//evil.example&q=a%26b",
                "/list?status=draft&q=a%26b&page=2",
                "?list=status%3Ddraft%26q%3Da%2526b%26page%3D2",
            ),
            (
                "sort=-payable&per_page=50",
                "/list?sort=-payable&per_page=50",
                "?list=sort%3D-payable%26per_page%3D50",
            ),
            ("status=banana", "/list", ""),
            ("//evil.example", "/list", ""),
            (long.as_str(), "/list", ""),
        ] {
            let source = SourceList::from_query(&Query::from_text(query), TODAY, &catalog());
            assert_eq!(source.address("/list"), list, "{query}");
            assert_eq!(source.suffix(), suffix, "{query}");
            let address = Query::from_text(suffix.trim_start_matches('?'));
            let named = Query::from_text(address.text(PARAMETER).unwrap_or_default());
            let again = SourceList::from_query(&named, TODAY, &catalog());
            assert_eq!(again, source, "{query}");
        }
    }
}
