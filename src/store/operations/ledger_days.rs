//! Finds the invoices that a reconciliation of one day must compare: those with an event or an unfinished run on that
//! day. Such a run may have changed something at the authority that no event reports yet.

use std::collections::BTreeSet;

use database::StoreError;
use jiff::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::Operation;
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::runs::run_row;

/// The kinds of events which show that an invoice was sent to the authority, or should have been.
const LEDGER_EVENTS: [EventKind; 6] = [
    EventKind::InvoiceSubmitted,
    EventKind::InvoiceTransmitted,
    EventKind::InvoiceAcknowledged,
    EventKind::InvoiceRejected,
    EventKind::InvoiceFailed,
    EventKind::PaymentStatusUpdated,
];

/// Returns the IRN keys of a taxpayer's invoices with an event or a run from `start` to just before `end`.
pub async fn irn_keys_to_compare(
    store: &Store,
    taxpayer: TaxpayerId,
    start: Timestamp,
    end: Timestamp,
) -> Result<BTreeSet<String>, StoreError> {
    let start = start.as_microsecond();
    let end = end.as_microsecond();
    let alive: Vec<String> = run_row::Entity::find()
        .select_only()
        .column(run_row::Column::IrnKey)
        .filter(run_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(run_row::Column::UpdatedAt.gte(start))
        .filter(run_row::Column::CreatedAt.lt(end))
        .filter(run_row::Column::Operation.ne(Operation::Report.as_str()))
        .into_tuple()
        .all(store.reader())
        .await?;
    let with_event: Vec<Option<String>> = event_row::Entity::find()
        .select_only()
        .column(event_row::Column::Irn)
        .distinct()
        .filter(event_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(event_row::Column::At.gte(start))
        .filter(event_row::Column::At.lt(end))
        .filter(event_row::Column::Kind.is_in(LEDGER_EVENTS.map(EventKind::as_str)))
        .into_tuple()
        .all(store.reader())
        .await?;
    let with_event = with_event
        .into_iter()
        .flatten()
        .filter_map(|irn| Irn::parse(&irn).ok())
        .map(|irn| irn.key());
    Ok(alive.into_iter().chain(with_event).collect())
}

/// True if any run of the taxpayer has changed since this time.
pub async fn has_changed_runs_since(
    store: &Store,
    taxpayer: TaxpayerId,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let found: Option<String> = run_row::Entity::find()
        .select_only()
        .column(run_row::Column::Id)
        .filter(run_row::Column::TaxpayerId.eq(taxpayer.0))
        .filter(run_row::Column::UpdatedAt.gte(since.as_microsecond()))
        .limit(1)
        .into_tuple()
        .one(store.reader())
        .await?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;
    use crate::domain::pipeline::{Run, RunRequest};
    use crate::store::runs;
    use crate::store::testing::stores;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(no: &str, operation: Operation, created: i64, updated: i64) -> Run {
        let irn = Irn::parse(&format!("{no}-94ad90fb-20261121")).unwrap();
        let request = RunRequest::sample(irn.as_str(), operation);
        Run {
            updated_at: at(updated),
            ..Run::new(clock::new_id(), TaxpayerId(7), request, at(created))
        }
    }

    #[tokio::test]
    async fn a_day_speaks_of_the_runs_whose_life_touches_it() {
        for test in stores().await {
            let runs = [
                run("BEFORE", Operation::Submit, 1, 99),
                run("WITHIN", Operation::Submit, 100, 199),
                run("WITHIN", Operation::Transmit, 150, 160),
                run("AROUND", Operation::Payment, 1, 500),
                run("AFTER", Operation::Submit, 200, 300),
                run("REPORT", Operation::Report, 100, 150),
            ];
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &runs.iter().collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let keys = async |taxpayer| {
                irn_keys_to_compare(&test.store, TaxpayerId(taxpayer), at(100), at(200))
                    .await
                    .unwrap()
            };
            let found: Vec<_> = keys(7).await.into_iter().collect();
            assert_eq!(
                found,
                ["AROUND-94AD90FB-20261121", "WITHIN-94AD90FB-20261121"]
            );
            assert!(keys(8).await.is_empty());
            let moved = async |second| {
                has_changed_runs_since(&test.store, TaxpayerId(7), at(second))
                    .await
                    .unwrap()
            };
            assert!(moved(500).await && !moved(501).await);
        }
    }
}
