//! Compares one day of our ledger with the authority's, invoice by invoice. The authority shows the effect of a call
//! before we record it. So we read the authority first and our data second: by then we have recorded most of the
//! effects that the authority shows. If the two sides still differ, both are read again, so that work in progress is
//! not reported as a finding.

use std::collections::{BTreeSet, HashMap};

use authority_client::{AuthorityFailure, Confirmation};
use jiff::civil::Date;

use crate::actors::on_behalf::authority_for_taxpayer;
use crate::actors::reconciliation::reconciler::{Reconciler, ReconciliationError};
use crate::actors::reconciliation::search::{AuthorityListing, to_printable};
use crate::actors::taxpayer::commands::{RecheckRun, RecordTransmission, StoppedRun};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{Run, RunState};
use crate::domain::reconciliation::comparison::{ComparisonResult, Difference, Repair, compare};
use crate::domain::reconciliation::day::{
    DayFindings, Finding, FindingAction, Reconciliation, ReconciliationCounts, day_span,
};
use crate::domain::reconciliation::finding_kind::FindingKind;
use crate::domain::reconciliation::records::{LocalRecord, RemoteRecord};
use crate::store::accounts::taxpayers;
use crate::store::invoices;
use crate::store::invoices::InvoiceIdentifiers;
use crate::store::operations::audit;
use crate::store::operations::ledger_days;
use crate::store::runs;

/// The maximum number of invoices read from our data in one batch.
const BATCH_MAX: usize = 128;

/// The comparison of one day: its input, and the counts and findings so far.
struct DayComparison<'r> {
    reconciler: &'r Reconciler,
    taxpayer: TaxpayerId,
    listing: AuthorityListing,
    counts: ReconciliationCounts,
    found: DayFindings,
}

impl Reconciler {
    /// Compares all invoices of one taxpayer and day. Returns the counts and the findings.
    pub(super) async fn compare_day(
        &self,
        reconciliation: &Reconciliation,
    ) -> Result<(ReconciliationCounts, DayFindings), ReconciliationError> {
        let taxpayer =
            taxpayers::find_by_id(self.store.reader(), reconciliation.taxpayer_id).await?;
        let taxpayer = taxpayer.ok_or(ReconciliationError::UnknownTaxpayer)?;
        let listing = self.read_listing(&taxpayer, reconciliation.day).await?;
        let keys = self
            .find_irn_keys(taxpayer.id, reconciliation.day, &listing.signed_on_day)
            .await?;
        let counts = ReconciliationCounts::default();
        let found = DayFindings::default();
        let mut comparison = DayComparison {
            reconciler: self,
            taxpayer: taxpayer.id,
            listing,
            counts,
            found,
        };
        comparison.compare_each_record(keys).await?;
        comparison.add_unreadable_findings();
        Ok((comparison.counts, comparison.found))
    }

    /// Returns the keys of the invoices to compare for a day, of which the authority has signed `signed`.
    async fn find_irn_keys(
        &self,
        taxpayer: TaxpayerId,
        day: Date,
        signed: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, ReconciliationError> {
        let logged = self.find_logged_irn_keys(taxpayer, Some(day)).await?;
        let logged_next = self
            .find_logged_irn_keys(taxpayer, day.tomorrow().ok())
            .await?;
        Ok(irn_keys_on_day(logged, signed, &logged_next))
    }

    async fn find_logged_irn_keys(
        &self,
        taxpayer: TaxpayerId,
        day: Option<Date>,
    ) -> Result<BTreeSet<String>, ReconciliationError> {
        let Some(span) = day.and_then(|day| day_span(day, self.schedule.zone)) else {
            return Ok(BTreeSet::new());
        };
        let keys =
            ledger_days::irn_keys_to_compare(&self.store, taxpayer, span.start, span.end).await?;
        Ok(keys)
    }

    /// Returns our records of these IRNs, by IRN key. An IRN of which we have no record is left out.
    async fn local_records(
        &self,
        taxpayer: TaxpayerId,
        keys: &[String],
    ) -> Result<HashMap<String, LocalRecord>, ReconciliationError> {
        let reader = self.store.reader();
        let names = InvoiceIdentifiers {
            irn_keys: keys.to_vec(),
            ..InvoiceIdentifiers::default()
        };
        let invoices = invoices::find_owned_by_identifiers(reader, taxpayer, names).await?;
        let mut invoices: HashMap<_, _> = invoices
            .into_iter()
            .map(|one| (one.irn.key(), one))
            .collect();
        let mut by_key: HashMap<String, Vec<Run>> = HashMap::new();
        for run in runs::find_owned_by_irn_keys(reader, taxpayer, keys.to_vec()).await? {
            let key = run.irn.key();
            by_key.entry(key).or_default().push(run);
        }
        let paused = by_key
            .values()
            .flatten()
            .filter(|run| run.state() == RunState::Paused);
        let held = audit::find_runs_paused_by_operator(
            self.store.reader(),
            &paused.map(|run| run.id).collect::<Vec<_>>(),
        )
        .await?;
        let records = keys.iter().filter_map(|key| {
            let invoice = invoices.remove(key);
            let runs = by_key.remove(key).unwrap_or_default();
            let local =
                LocalRecord::from_runs(invoice.as_ref(), &runs, |run| held.contains(&run.id))?;
            Some((key.clone(), local))
        });
        Ok(records.collect())
    }

    /// Asks the authority for its record of an IRN. Returns `None` if the authority has not signed an invoice with this
    /// IRN.
    async fn fetch_record(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<Option<RemoteRecord>, ReconciliationError> {
        let authority = authority_for_taxpayer(&self.authority, &self.store, taxpayer).await?;
        match authority.confirm(irn.as_str()).await {
            Ok(confirmation) => Ok(Some(confirmed_record(irn, &confirmation))),
            Err(AuthorityFailure::NotFound { .. }) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl DayComparison<'_> {
    async fn compare_each_record(
        &mut self,
        keys: BTreeSet<String>,
    ) -> Result<(), ReconciliationError> {
        let keys: Vec<_> = keys.into_iter().collect();
        for batch in keys.chunks(BATCH_MAX) {
            let mut records = self.reconciler.local_records(self.taxpayer, batch).await?;
            for key in batch {
                self.compare_record(key, records.remove(key)).await?;
            }
        }
        Ok(())
    }

    async fn compare_record(
        &mut self,
        key: &str,
        local: Option<LocalRecord>,
    ) -> Result<(), ReconciliationError> {
        self.counts.compared += 1;
        let line = self.listing.lines.get(key).cloned();
        let Some(irn) = listed_or_local_irn(key, local.as_ref(), line.as_ref()) else {
            return Ok(());
        };
        let remote = match line {
            Some(Some(remote)) => Some(remote),
            Some(None) => self.reconciler.fetch_record(self.taxpayer, &irn).await?,
            None if local.as_ref().is_some_and(LocalRecord::may_be_signed) => {
                self.reconciler.fetch_record(self.taxpayer, &irn).await?
            }
            None => None,
        };
        match compare(local.as_ref(), remote.as_ref()) {
            ComparisonResult::Agreed => {
                self.counts.agreed += 1;
                self.found.compared_keys.insert(key.to_owned());
            }
            ComparisonResult::InProgress => self.counts.in_progress += 1,
            ComparisonResult::Differs(_) => return self.confirm_difference(key, &irn, local).await,
        }
        Ok(())
    }

    /// Asks the authority again and reads our record again. A difference is a finding only if the authority's new
    /// answer differs in the same way from our earlier record and from our present record.
    async fn confirm_difference(
        &mut self,
        key: &str,
        irn: &Irn,
        before: Option<LocalRecord>,
    ) -> Result<(), ReconciliationError> {
        let remote = self.reconciler.fetch_record(self.taxpayer, irn).await?;
        let after = self
            .reconciler
            .local_records(self.taxpayer, &[key.to_owned()])
            .await?
            .remove(key);
        let first: Vec<_> = finding_kinds(compare(before.as_ref(), remote.as_ref()));
        match compare(after.as_ref(), remote.as_ref()) {
            ComparisonResult::InProgress => self.counts.in_progress += 1,
            comparison => {
                let mut differences = comparison.differences();
                let count = differences.len();
                differences.retain(|difference| first.contains(&difference.kind));
                if differences.len() == count {
                    self.found.compared_keys.insert(key.to_owned());
                }
                if differences.is_empty() {
                    self.counts.agreed += 1;
                }
                for difference in differences {
                    self.repair_or_report(irn, difference, after.as_ref(), remote.as_ref())
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Repairs a difference if that is possible, and otherwise leaves it to an operator. Adds a finding in both cases.
    async fn repair_or_report(
        &mut self,
        irn: &Irn,
        difference: Difference,
        local: Option<&LocalRecord>,
        remote: Option<&RemoteRecord>,
    ) -> Result<(), ReconciliationError> {
        let kind = difference.kind;
        let irn = local.map_or(irn, |local| &local.irn);
        let (action, detail) = match difference.repair {
            None => (FindingAction::Listed, kind.advice().to_owned()),
            Some(repair) => match self.repair(irn, repair).await {
                Ok(detail) => (FindingAction::Repaired, detail.to_owned()),
                Err(TaxpayerError::Refused(refusal)) => {
                    (FindingAction::Listed, refusal.to_string())
                }
                Err(failure) => return Err(failure.into()),
            },
        };
        match action {
            FindingAction::Repaired => self.counts.repaired += 1,
            FindingAction::Listed => self.counts.listed += 1,
        }
        self.found.findings.push(Finding {
            kind,
            irn: irn.to_string(),
            local: local.map(LocalRecord::description),
            remote: remote.map(RemoteRecord::description),
            action,
            detail,
        });
        Ok(())
    }

    /// Makes a repair. Returns its description for the finding.
    async fn repair(&self, irn: &Irn, repair: Repair) -> Result<&'static str, TaxpayerError> {
        let taxpayers = &self.reconciler.taxpayers;
        match repair {
            Repair::Query(standing) => {
                let irn = irn.clone();
                let stopped = StoppedRun {
                    run: standing.run_id,
                    irn,
                    seen_updated_at: standing.run_updated_at,
                };
                taxpayers.send(self.taxpayer, RecheckRun(stopped)).await?;
                Ok("The run goes on now: it asks the authority what came of it.")
            }
            Repair::RecordTransmission { is_delivered } => {
                taxpayers
                    .send(
                        self.taxpayer,
                        RecordTransmission {
                            irn: irn.clone(),
                            is_delivered,
                        },
                    )
                    .await?;
                Ok("What the authority says of the transmission is recorded.")
            }
        }
    }

    fn add_unreadable_findings(&mut self) {
        for irn in &self.listing.unreadable {
            self.counts.listed += 1;
            self.found.findings.push(Finding {
                kind: FindingKind::Unreadable,
                irn: irn.clone(),
                local: None,
                remote: None,
                action: FindingAction::Listed,
                detail: FindingKind::Unreadable.advice().to_owned(),
            });
        }
    }
}

/// Returns the record that `confirm` gives of an invoice, with a payment status that the database can store.
fn confirmed_record(irn: &Irn, confirmation: &Confirmation) -> RemoteRecord {
    RemoteRecord {
        irn: irn.clone(),
        payment_status: to_printable(&confirmation.payment_status),
        is_transmitted: confirmation.transmitted,
        is_delivered: confirmation.delivered,
    }
}

/// Returns the IRN keys to compare for a day: those in our log of this day (`logged`), and those that the authority
/// dates to this day (`signed`) but that are not in our log of the next day (`logged_next`). The authority may date a
/// signature one day earlier than our log does, because its time zone is not certain. Such an invoice is compared with
/// the next day.
fn irn_keys_on_day(
    logged: BTreeSet<String>,
    signed: &BTreeSet<String>,
    logged_next: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut keys = logged;
    keys.extend(signed.difference(logged_next).cloned());
    keys
}

/// Returns the IRN in the authority's spelling. If the authority did not list it, returns our spelling; if we have no
/// record either, parses `key`.
fn listed_or_local_irn(
    key: &str,
    local: Option<&LocalRecord>,
    line: Option<&Option<RemoteRecord>>,
) -> Option<Irn> {
    let remote = line
        .and_then(Option::as_ref)
        .map(|remote| remote.irn.clone());
    remote
        .or_else(|| local.map(|local| local.irn.clone()))
        .or_else(|| Irn::parse(key).ok())
}

fn finding_kinds(comparison: ComparisonResult) -> Vec<FindingKind> {
    comparison
        .differences()
        .iter()
        .map(|difference| difference.kind)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_status_of_any_text_can_be_stored() {
        let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
        let long = "x".repeat(1_000);
        for (told, kept) in [
            ("PAID", "PAID"),
            ("PA\u{0}ID\n", "PAID"),
            (long.as_str(), &long[..300]),
        ] {
            let confirmation = Confirmation {
                issue_date: None,
                due_date: None,
                sync_date: None,
                payment_status: told.to_owned(),
                transmitted: true,
                delivered: false,
            };
            let record = confirmed_record(&irn, &confirmation);
            assert_eq!(record.payment_status, kept);
            assert_eq!((record.is_transmitted, record.is_delivered), (true, false));
        }
    }

    #[test]
    fn an_invoice_that_the_authority_dates_a_day_early_belongs_to_the_day_of_our_log() {
        let keys = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        for (logged, signed, logged_next, expected) in [
            ("", "", "", ""),
            ("A", "A", "", "A"),
            ("A", "", "", "A"),
            ("", "A", "", "A"),
            ("", "A", "A", ""),
            ("A", "A", "A", "A"),
            ("A", "B C", "C D", "A B"),
        ] {
            let found = irn_keys_on_day(keys(logged), &keys(signed), &keys(logged_next));
            let expected: BTreeSet<String> = keys(expected);
            assert_eq!(found, expected, "{logged} | {signed} | {logged_next}");
        }
    }
}
