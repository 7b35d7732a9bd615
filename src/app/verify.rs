//! Walks the event chain of one taxpayer or of all, from the first event to the last.

use std::fmt;

use crate::app::error::StartError;
use crate::app::house::open_existing;
use crate::config::Settings;
use crate::domain::event::Head;
use crate::domain::ids::TaxpayerId;
use crate::store::database::Store;
use crate::store::failure::StoreError;
use crate::store::{events, taxpayers};

/// Events read at once.
const PAGE: u64 = 1_000;

/// What the walk found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    taxpayers: usize,
    events: i64,
    /// Where a chain breaks: the taxpayer and the event that does not follow.
    breaks: Vec<(TaxpayerId, i64)>,
}

impl Report {
    pub fn is_intact(&self) -> bool {
        self.breaks.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events of {} taxpayers", self.events, self.taxpayers)?;
        for (taxpayer, sequence) in &self.breaks {
            write!(f, "; the chain of taxpayer {taxpayer} breaks at event {sequence}")?;
        }
        if self.is_intact() { f.write_str(": every chain is whole") } else { Ok(()) }
    }
}

/// Checks that no event was changed, lost or put in between.
pub async fn verify(settings: Settings, taxpayer: Option<i64>) -> Result<Report, StartError> {
    let store = open_existing(&settings).await?;
    let ids = match taxpayer {
        Some(id) => match taxpayers::with_id(store.reader(), TaxpayerId(id)).await? {
            Some(taxpayer) => vec![taxpayer.id],
            None => return Err(StartError::NoTaxpayer(id)),
        },
        None => taxpayers::all_ids(&store).await?,
    };
    let mut report = Report { taxpayers: ids.len(), ..Report::default() };
    for id in ids {
        walk(&store, id, &mut report).await?;
    }
    store.close().await;
    Ok(report)
}

async fn walk(store: &Store, taxpayer: TaxpayerId, report: &mut Report) -> Result<(), StoreError> {
    let mut head = Head::default();
    loop {
        let page = events::owned_by_after(store, taxpayer, head.sequence, PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        for event in &page {
            if !head.accept(event) {
                report.breaks.push((taxpayer, event.sequence));
                return Ok(());
            }
            report.events += 1;
        }
    }
}
