//! The invoices of a list, one after the other. They are read page by page, each page by a query of its own: between
//! two pages no connection to the database is held, however slowly the caller reads.

use std::collections::HashMap;
use std::vec;

use actix_web::web;

use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{CustomerId, InvoiceId};
use crate::domain::party::CustomerDetails;
use crate::http::extract::reading_right::ReadingRight;
use crate::http::invoice_page::{PAGE_INVOICES, reserve_invoice_memory, reserve_page_memory};
use crate::http::limits::{AnswerHolder, AnswerPermit};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{InvoiceList, PageBounds, PageFields, PageStart};
use crate::store::invoices::{self, customers};

/// A loaded invoice takes this many times the memory of its text.
const LOADED_FACTOR: usize = 10;

/// Says whether a reader also loads the customers of the invoices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadedParties {
    None,
    Customers,
}

pub(crate) struct InvoiceReader {
    state: web::Data<ApiState>,
    holder: AnswerHolder,
    right: ReadingRight,
    list: InvoiceList,
    parties: LoadedParties,
    total: u64,
    /// The start of the next page; `None` after the last page.
    next_page: Option<PageStart>,
    page: vec::IntoIter<Invoice>,
    /// The invoices of the page that lack their long fields, with the length of these fields in bytes.
    long_invoices: HashMap<InvoiceId, usize>,
    customers: HashMap<CustomerId, CustomerDetails>,
    /// The memory reserved for a long invoice. It is held until the next invoice is read.
    long_invoice_permit: Option<AnswerPermit>,
    page_permit: AnswerPermit,
}

impl InvoiceReader {
    /// Counts the invoices of a list and reserves memory for a page of them.
    pub(crate) async fn new(
        state: web::Data<ApiState>,
        holder: AnswerHolder,
        right: ReadingRight,
        list: InvoiceList,
        parties: LoadedParties,
    ) -> Result<Self, ApiError> {
        let page_permit = reserve_page_memory(&state, holder).await?;
        Ok(Self {
            total: list.count(&state.store).await?,
            state,
            holder,
            right,
            list,
            parties,
            next_page: Some(PageStart::At(0)),
            page: Vec::new().into_iter(),
            long_invoices: HashMap::new(),
            customers: HashMap::new(),
            long_invoice_permit: None,
            page_permit,
        })
    }

    /// Returns the number of invoices when reading began.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn state(&self) -> &web::Data<ApiState> {
        &self.state
    }

    /// Returns the permit that reserves memory for one page of the list. A file keeps the permit until it is sent,
    /// which limits how many lists are read and sent at the same time.
    pub(super) fn into_page_permit(self) -> AnswerPermit {
        self.page_permit
    }

    /// True if the invoice that `next` returned last is so long that memory is reserved for it until `next` is called
    /// again.
    pub(super) fn holds_long_invoice(&self) -> bool {
        self.long_invoice_permit.is_some()
    }

    /// Fails if the reader may not read any more. A caller that loads more about each invoice than the list has checks
    /// this before it does so, because `next` checks it only once for a page.
    pub(crate) async fn require_right(&self) -> Result<(), ApiError> {
        self.right.require_still_held().await
    }

    /// Returns the next invoice; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Invoice>, ApiError> {
        // Frees the memory of the invoice that was returned before, so that it is free when memory is reserved now.
        self.long_invoice_permit = None;
        loop {
            if let Some(invoice) = self.page.next() {
                return self.load_omitted_fields(invoice).await.map(Some);
            }
            let Some(start) = self.next_page else {
                return Ok(None);
            };
            self.load_page(start).await?;
        }
    }

    /// Returns the stored customer of an invoice that `next` returned last. `None` if the reader loads no customers.
    pub(super) fn customer(&self, invoice: &Invoice) -> Option<CustomerDetails> {
        self.customers.get(&invoice.customer.id).cloned()
    }

    async fn load_page(&mut self, start: PageStart) -> Result<(), ApiError> {
        self.right.require_still_held().await?;
        let store = &self.state.store;
        let bounds = PageBounds {
            start,
            limit: PAGE_INVOICES,
        };
        let page = self
            .list
            .page_with_known_total(store, bounds, self.total, PageFields::All)
            .await?;
        if self.parties == LoadedParties::Customers {
            let invoices = page.invoices.iter();
            let ids = invoices.map(|invoice| invoice.customer.id);
            let customers =
                customers::find_owned_by_ids(store.reader(), self.list.taxpayer, ids).await?;
            let details = customers
                .into_iter()
                .map(|customer| (customer.id, customer.details));
            self.customers = details.collect();
        }
        self.next_page = page.next.map(PageStart::After);
        self.long_invoices = page.long_invoices;
        self.page = page.invoices.into_iter();
        Ok(())
    }

    /// Returns the invoice with all its fields. A page leaves out some fields of a long invoice, which are loaded here.
    async fn load_omitted_fields(&mut self, invoice: Invoice) -> Result<Invoice, ApiError> {
        let Some(bytes) = self.long_invoices.get(&invoice.id) else {
            return Ok(invoice);
        };
        self.right.require_still_held().await?;
        let bytes = bytes.saturating_mul(LOADED_FACTOR);
        self.long_invoice_permit =
            Some(reserve_invoice_memory(&self.state, self.holder, bytes).await?);
        let _turn = self.state.answers.wait_for_rendering_turn().await;
        let owner = self.list.taxpayer;
        let invoice = invoices::find_owned_by_id(&self.state.store, owner, invoice.id).await?;
        invoice.ok_or_else(|| ApiError::internal("an invoice of a list is gone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{TAXPAYER, start_app};
    use crate::store::invoices::list::{InvoiceFilter, InvoiceSort};

    #[actix_web::test]
    async fn a_page_is_read_only_while_the_reader_may_read() {
        let app = start_app().await;
        for (answer, is_read) in [(Some(true), true), (Some(false), false), (None, false)] {
            let right = ReadingRight::new(move || {
                Box::pin(async move { answer.ok_or_else(|| ApiError::internal("no answer")) })
            });
            let list = InvoiceList {
                taxpayer: TAXPAYER,
                filters: InvoiceFilter::default(),
                sort: InvoiceSort::BY_INVOICE_DATE,
            };
            let holder = AnswerHolder::for_taxpayer(TAXPAYER, None);
            let parties = LoadedParties::None;
            let opened = InvoiceReader::new(app.state.clone(), holder, right, list, parties).await;
            assert_eq!(opened.unwrap().next().await.is_ok(), is_read, "{answer:?}");
        }
    }
}
