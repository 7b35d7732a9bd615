//! One day, invoice by invoice. The authority is read first and our books after it, so that what the authority has
//! is never news to a run that has just ended; and what differs is looked at once more on both sides, so that what
//! was on its way is no finding.

use std::collections::{BTreeSet, HashMap};

use crate::actors::reconciliation::desk::{BrokenOff, Reconciler};
use crate::actors::reconciliation::search::Listed;
use crate::actors::taxpayer::command::RunRecheck;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::authority::{AuthorityFailure, CallerAccount};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{Run, RunState};
use crate::domain::reconciliation::day::{
    Finding, FindingAction, Reconciliation, ReconciliationCounts, span,
};
use crate::domain::reconciliation::{
    Comparison, Difference, FindingKind, LocalRecord, RemoteRecord, Repair, compare,
};
use crate::store::accounts::taxpayers;
use crate::store::invoices;
use crate::store::invoices::InvoiceNames;
use crate::store::operations::audit;
use crate::store::operations::ledger_days;
use crate::store::runs;

/// Invoices whose books are read together.
const TOGETHER: usize = 128;

/// A day that is being compared, and what has come of it so far.
struct Visit<'r> {
    reconciler: &'r Reconciler,
    taxpayer: TaxpayerId,
    listed: Listed,
    counts: ReconciliationCounts,
    findings: Vec<Finding>,
}

impl Reconciler {
    /// Compares a day to its end.
    pub(super) async fn visit(
        &self,
        one: &Reconciliation,
    ) -> Result<(ReconciliationCounts, Vec<Finding>), BrokenOff> {
        let taxpayer = taxpayers::with_id(self.store.reader(), one.taxpayer_id).await?;
        let taxpayer = taxpayer.ok_or(BrokenOff::Nobody)?;
        let listed = self.listed(&taxpayer, one.day).await?;
        let mut keys = listed.of_day.clone();
        if let Some(span) = span(one.day, self.schedule.zone) {
            keys.extend(ledger_days::irn_keys(&self.store, taxpayer.id, span).await?);
        }
        let (counts, findings) = (ReconciliationCounts::default(), Vec::new());
        let mut visit = Visit { reconciler: self, taxpayer: taxpayer.id, listed, counts, findings };
        visit.compare_all(keys).await?;
        visit.list_unreadable();
        Ok((visit.counts, visit.findings))
    }

    /// What the books hold of some IRNs, by their keys.
    async fn books(
        &self,
        taxpayer: TaxpayerId,
        keys: &[String],
    ) -> Result<HashMap<String, LocalRecord>, BrokenOff> {
        let reader = self.store.reader();
        let names = InvoiceNames { irn_keys: keys.to_vec(), ..InvoiceNames::default() };
        let invoices = invoices::owned_by_with_names(reader, taxpayer, names).await?;
        let mut invoices: HashMap<_, _> = invoices.into_iter().map(|one| (one.irn.key(), one)).collect();
        let mut by_key: HashMap<String, Vec<Run>> = HashMap::new();
        for run in runs::owned_by_with_irn_keys(reader, taxpayer, keys.to_vec()).await? {
            by_key.entry(run.irn.key()).or_default().push(run);
        }
        let paused = by_key.values().flatten().filter(|run| run.state == RunState::Paused);
        let held = audit::held(&self.store, &paused.map(|run| run.id).collect::<Vec<_>>()).await?;
        let book = |key: &String| {
            let (invoice, runs) = (invoices.remove(key), by_key.remove(key).unwrap_or_default());
            let ours = LocalRecord::of(invoice.as_ref(), &runs, |run| held.contains(&run.id))?;
            Some((key.clone(), ours))
        };
        Ok(keys.iter().filter_map(book).collect())
    }

    /// What the authority has of an IRN, if it has it signed.
    async fn confirmed(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<Option<RemoteRecord>, BrokenOff> {
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(taxpayer));
        match authority.confirm(irn.as_str()).await {
            Ok(told) => Ok(Some(RemoteRecord {
                irn: irn.clone(),
                payment_status: told.payment_status,
                is_transmitted: told.transmitted,
                is_delivered: told.delivered,
            })),
            Err(AuthorityFailure::NotFound { .. }) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Visit<'_> {
    async fn compare_all(&mut self, keys: BTreeSet<String>) -> Result<(), BrokenOff> {
        let keys: Vec<_> = keys.into_iter().collect();
        for together in keys.chunks(TOGETHER) {
            let mut books = self.reconciler.books(self.taxpayer, together).await?;
            for key in together {
                self.compare_one(key, books.remove(key)).await?;
            }
        }
        Ok(())
    }

    async fn compare_one(&mut self, key: &str, ours: Option<LocalRecord>) -> Result<(), BrokenOff> {
        self.counts.compared += 1;
        let line = self.listed.lines.get(key).cloned();
        let Some(irn) = irn_of(key, ours.as_ref(), line.as_ref()) else { return Ok(()) };
        let theirs = match line {
            Some(Some(theirs)) => Some(theirs),
            Some(None) => self.reconciler.confirmed(self.taxpayer, &irn).await?,
            None if ours.as_ref().is_some_and(LocalRecord::may_be_signed) => {
                self.reconciler.confirmed(self.taxpayer, &irn).await?
            }
            None => None,
        };
        match compare(ours.as_ref(), theirs.as_ref()) {
            Comparison::Agreed => self.counts.agreed += 1,
            Comparison::UnderWay => self.counts.under_way += 1,
            Comparison::Differs(_) => return self.look_again((key, &irn), ours).await,
        }
        Ok(())
    }

    /// What still differs when the authority is asked once more, both from our books as they were before and as
    /// they are after that, is a finding.
    async fn look_again(
        &mut self,
        (key, irn): (&str, &Irn),
        before: Option<LocalRecord>,
    ) -> Result<(), BrokenOff> {
        let theirs = self.reconciler.confirmed(self.taxpayer, irn).await?;
        let after = self.reconciler.books(self.taxpayer, &[key.to_owned()]).await?.remove(key);
        let first: Vec<_> = kinds(compare(before.as_ref(), theirs.as_ref()));
        match compare(after.as_ref(), theirs.as_ref()) {
            Comparison::UnderWay => self.counts.under_way += 1,
            comparison => {
                let mut found = comparison.differences();
                found.retain(|difference| first.contains(&difference.kind));
                if found.is_empty() {
                    self.counts.agreed += 1;
                }
                for difference in found {
                    self.settle(irn, difference, (after.as_ref(), theirs.as_ref())).await?;
                }
            }
        }
        Ok(())
    }

    /// Mends a difference or lists it.
    async fn settle(
        &mut self,
        irn: &Irn,
        difference: Difference,
        (ours, theirs): (Option<&LocalRecord>, Option<&RemoteRecord>),
    ) -> Result<(), BrokenOff> {
        let kind = difference.kind;
        let irn = ours.map_or(irn, |ours| &ours.irn);
        let (action, detail) = match difference.mend {
            None => (FindingAction::Listed, kind.advice().to_owned()),
            Some(mend) => match self.mend(irn, mend).await {
                Ok(detail) => (FindingAction::Mended, detail.to_owned()),
                Err(TaxpayerError::Refused(refusal)) => (FindingAction::Listed, refusal.to_string()),
                Err(failure) => return Err(failure.into()),
            },
        };
        match action {
            FindingAction::Mended => self.counts.mended += 1,
            FindingAction::Listed => self.counts.listed += 1,
        }
        self.findings.push(Finding {
            kind,
            irn: irn.to_string(),
            ours: ours.map(LocalRecord::words),
            theirs: theirs.map(RemoteRecord::words),
            action,
            detail,
        });
        Ok(())
    }

    /// Says what was done.
    async fn mend(&self, irn: &Irn, mend: Repair) -> Result<&'static str, TaxpayerError> {
        let taxpayers = &self.reconciler.taxpayers;
        match mend {
            Repair::Ask(standing) => {
                let irn = irn.clone();
                let order = RunRecheck { run: standing.run, irn, seen: standing.seen };
                taxpayers.recheck_run(self.taxpayer, order).await?;
                Ok("The run goes on now: it asks the authority what came of it.")
            }
            Repair::Record { is_delivered } => {
                taxpayers.record_transit(self.taxpayer, irn.clone(), is_delivered).await?;
                Ok("What the authority says of the transmission is recorded.")
            }
        }
    }

    fn list_unreadable(&mut self) {
        for irn in &self.listed.unreadable {
            self.counts.listed += 1;
            self.findings.push(Finding {
                kind: FindingKind::Unreadable,
                irn: irn.clone(),
                ours: None,
                theirs: None,
                action: FindingAction::Listed,
                detail: FindingKind::Unreadable.advice().to_owned(),
            });
        }
    }
}

/// As the authority spells it, else as we do.
fn irn_of(key: &str, ours: Option<&LocalRecord>, line: Option<&Option<RemoteRecord>>) -> Option<Irn> {
    let theirs = line.and_then(Option::as_ref).map(|theirs| theirs.irn.clone());
    theirs.or_else(|| ours.map(|ours| ours.irn.clone())).or_else(|| Irn::parse(key).ok())
}

fn kinds(comparison: Comparison) -> Vec<FindingKind> {
    comparison.differences().iter().map(|difference| difference.kind).collect()
}
