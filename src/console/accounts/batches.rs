//! Batches of invoices, each sent in one request: the list of batches, and one batch with the outcome of each invoice.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::accounts::navigation::base_path;
use crate::console::badges::{Badge, outcome_badge};
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, redirect, show};
use crate::console::session::accounts::{AccountSession, Reader};
use crate::domain::invoice::batch::{Batch, BatchItem, Duplicate, ItemOutcome};
use crate::http::exports::{self, TableFormat};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::store::invoices::batches::{self, BatchSummary};
use crate::store::invoices::list::{InvoiceFilter, InvoiceList, InvoiceSort};
use crate::store::invoices::running_imports;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/batches").page(list_batches),
        path("/dashboard/{taxpayer}/batches/{batch_no}").page(show_batch),
        path("/dashboard/{taxpayer}/batches/{batch_no}/files/{file}").page(download_batch),
    ]
}

const PER_PAGE: u64 = 25;

#[derive(Template)]
#[template(path = "accounts/batches.html")]
struct BatchesPage {
    frame: Frame,
    base: String,
    batches: Vec<BatchSummary>,
    pages: PagePosition,
}

#[derive(Template)]
#[template(path = "accounts/batch.html")]
struct BatchPage {
    frame: Frame,
    base: String,
    batch: Batch,
    created: usize,
    duplicates: usize,
    /// The number of duplicates whose contents differ from those of the existing invoice.
    different_duplicates: usize,
    failed: usize,
    items: Vec<BatchItemLine>,
}

struct BatchItemLine {
    /// The position in the request, counted from 1.
    row_number: usize,
    item: BatchItem,
    badge: Badge,
    /// The messages of a failed item, each with its field.
    errors: Vec<(String, String)>,
}

impl BatchItemLine {
    fn new(index: usize, item: BatchItem) -> Self {
        let messages = item.errors.iter().flatten();
        let errors = messages
            .flat_map(|(field, texts)| texts.iter().map(|text| (field.clone(), text.clone())));
        Self {
            row_number: index + 1,
            badge: outcome_badge(item.outcome, item.duplicate, item.existing_cancelled),
            errors: errors.collect(),
            item,
        }
    }
}

async fn list_batches(state: web::Data<ApiState>, Reader(session): Reader, query: Query) -> Answer {
    let page = query.page(PER_PAGE);
    let (batches, total) =
        batches::summaries_owned_by(&state.store, session.taxpayer, page).await?;
    let base = base_path(&session);
    let page = BatchesPage {
        frame: Frame::for_account(&session, "Batches"),
        pages: PagePosition::new(page, total, &format!("{base}/batches"), &query),
        base,
        batches,
    };
    show_list(&page.pages, &page)
}

/// Sends the outcomes of a batch as a file, for the links of the page.
async fn download_batch(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String, String)>,
) -> Result<FileAnswer, ApiError> {
    let format = TableFormat::from_extension(&ids.2).ok_or_else(ApiError::route_not_found)?;
    let batch = path_ids::find_batch(&state, session.taxpayer, &ids.1).await?;
    exports::batch_file(&state, batch, format).await
}

/// Returns the page of a batch without a record, such as the batch of a large imported file: the page of its import
/// while the import runs, otherwise the list of its invoices. `None` if there is no such batch.
async fn find_page_without_record(
    state: &ApiState,
    session: &AccountSession,
    batch_no: &str,
) -> Result<Option<String>, ApiError> {
    if batch_no.chars().any(char::is_control) {
        return Ok(None);
    }
    let (store, taxpayer) = (&state.store, session.taxpayer);
    let base = base_path(session);
    if let Some(import) = running_imports::find_by_batch(store, taxpayer, batch_no).await? {
        return Ok(Some(format!("{base}/imports/{}", import.import_no)));
    }
    let list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            batch_no: Some(batch_no.to_owned()),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::NEWEST_FIRST,
    };
    let is_known = list.count_up_to(store, 1).await? > 0;
    let query = Serializer::new(String::new())
        .append_pair("batch_no", batch_no)
        .finish();
    Ok(is_known.then(|| format!("{base}/invoices?{query}")))
}

async fn show_batch(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let mut batch = match path_ids::find_batch(&state, session.taxpayer, &ids.1).await {
        Ok(batch) => batch,
        Err(error) if error.code == ErrorCode::BatchNotFound => {
            let page = find_page_without_record(&state, &session, &ids.1).await?;
            return page.map(|page| redirect(&page)).ok_or(error);
        }
        Err(error) => return Err(error),
    };
    let [created, duplicates, failed] = [
        ItemOutcome::Created,
        ItemOutcome::Duplicate,
        ItemOutcome::Failed,
    ]
    .map(|one| batch.count(one));
    let different_duplicates = batch.count_different_duplicates();
    let mut items: Vec<_> = (0..)
        .zip(std::mem::take(&mut batch.items))
        .map(|(index, item)| BatchItemLine::new(index, item))
        .collect();
    // The failed items come first, because the reader has to correct them.
    items.sort_by_key(|line| {
        let is_failed = line.item.outcome == ItemOutcome::Failed;
        let is_different = line.item.duplicate == Some(Duplicate::Different);
        (!is_failed, !is_different)
    });
    let frame = Frame::for_account(&session, "Batch");
    let base = base_path(&session);
    show(&BatchPage {
        frame,
        base,
        batch,
        created,
        duplicates,
        different_duplicates,
        failed,
        items,
    })
}
