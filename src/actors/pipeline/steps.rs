//! One step: the call, and what its answer means. An effectful call whose outcome is unknown, now or in an
//! earlier life of this process, is asked about before it is made again; nothing is guessed.

use jiff::Timestamp;
use serde_json::Value;

use crate::actors::pipeline::resolve::settle;
use crate::actors::pipeline::witness::Sighting;
use crate::authority::{Authority, AuthorityFailure, Cause, CryptoKeys, IrnCheck};
use crate::domain::payment::RelayedPayment;
use crate::domain::pipeline::{ResolvedBy, Run, Step};
use crate::store::db::connections::Store;

/// What a call came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Done {
        by: ResolvedBy,
        qr_code: Option<String>,
    },
    /// It stood so already, and nothing was sent.
    Unchanged(ResolvedBy),
    Failed(Trouble),
}

/// Why a step is not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The authority's decision, or ours before anything was sent.
    Refused(String),
    Health,
    AccessPoint(String),
    /// It cannot be told without somebody who looks.
    NeedsOperator(String),
    Call(AuthorityFailure),
}

impl From<AuthorityFailure> for Trouble {
    fn from(failure: AuthorityFailure) -> Self {
        match failure {
            AuthorityFailure::Refused { message, .. } => Self::Refused(message),
            AuthorityFailure::Retryable { reason: Cause::Offline { message } } => Self::AccessPoint(message),
            other => Self::Call(other),
        }
    }
}

type Checked = Result<Outcome, Trouble>;

/// Makes calls for runs.
pub(super) struct Caller<'a> {
    pub(super) authority: &'a Authority,
    pub(super) keys: Option<&'a CryptoKeys>,
    pub(super) store: &'a Store,
}

impl Caller<'_> {
    /// Calls a step of a run. `resuming` says that it may have been called before with no known outcome.
    pub(super) async fn call(&self, run: &Run, step: Step, resuming: bool, now: Timestamp) -> Outcome {
        let outcome = match step {
            Step::IrnCheck => self.irn_check(run).await,
            // What the authority has signed already needs no checking.
            Step::DataCheck if run.was_asked_about() => Ok(done()),
            Step::DataCheck => answered(self.authority.validate(&run.document).await),
            Step::Sign => self.sign(run, resuming || run.was_asked_about(), now).await,
            Step::Confirm => self.confirm(run).await,
            Step::Health | Step::AccessPoints if run.unsettled().is_some() => {
                self.look_first(run, step).await
            }
            Step::Health | Step::AccessPoints => self.momentary(run, step).await,
            Step::Send => self.send(run, resuming).await.map_err(settled),
            Step::Receipt => Ok(done()),
            Step::Report => self.report(run, resuming).await.map_err(settled),
            Step::Payment => self.update_payment(run, resuming).await.map_err(settled),
        };
        outcome.unwrap_or_else(Outcome::Failed)
    }

    /// The authority answers a signed IRN and a busy moment with the same words. What it has signed may be this very
    /// document, in an earlier life of this run; the steps after it know that by how this one was resolved.
    async fn irn_check(&self, run: &Run) -> Checked {
        let text =
            |field: &str| run.document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let check = IrnCheck {
            invoice_reference: text("invoice_reference"),
            business_id: text("business_id"),
            irn: run.irn.to_string(),
        };
        match self.authority.validate_irn(&check).await {
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                settle(unknown, self.signed(run).await).map(known)
            }
            answer => answered(answer),
        }
    }

    /// The QR code is made first: an IRN that has none must not be signed. A refusal of what may be signed already is
    /// no answer yet: the authority may have signed it and say so in words of its own.
    async fn sign(&self, run: &Run, is_asked_first: bool, now: Timestamp) -> Checked {
        let qr_code = self.keys.map(|keys| keys.qr_code(run.irn.as_str(), now)).transpose();
        let qr_code = qr_code.map_err(|error| Trouble::Refused(error.to_string()))?;
        if is_asked_first && let Some(by) = self.signed(run).await? {
            return Ok(Outcome::Done { by, qr_code });
        }
        let by = match self.authority.sign(&run.document).await {
            Ok(()) => ResolvedBy::Answer,
            Err(unknown @ AuthorityFailure::Unknown { .. }) => settle(unknown, self.signed(run).await)?,
            Err(refusal) if refusal.is_final() && is_asked_first => {
                self.signed(run).await?.ok_or_else(|| Trouble::from(refusal))?
            }
            Err(failure) => return Err(failure.into()),
        };
        Ok(Outcome::Done { by, qr_code })
    }

    /// Signed it is; whether the authority says so is a matter of time, and no answer to it refuses the invoice.
    async fn confirm(&self, run: &Run) -> Checked {
        let unheard =
            || AuthorityFailure::NotFound { message: "the authority does not know the IRN".to_owned() };
        match self.happened(run, |_| true).await?.ok_or_else(|| Trouble::Call(unheard()))? {
            ResolvedBy::Confirm => Ok(done()),
            by => Ok(known(by)),
        }
    }

    /// A transmission that may have happened makes every question about the moment moot if it has.
    async fn look_first(&self, run: &Run, step: Step) -> Checked {
        match self.happened(run, was_sent).await? {
            Some(by) => Ok(known(by)),
            None => self.momentary(run, step).await,
        }
    }

    async fn momentary(&self, run: &Run, step: Step) -> Checked {
        if step == Step::Health {
            self.health().await
        } else {
            self.access_points(run).await.map_err(settled)
        }
    }

    /// A refusal says nothing of the document, which it does not hold: it is as good as down.
    async fn health(&self) -> Checked {
        match self.authority.system_healthy().await {
            Ok(true) => Ok(done()),
            Ok(false) => Err(Trouble::Health),
            Err(failure) if failure.is_final() => Err(Trouble::Health),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn access_points(&self, run: &Run) -> Checked {
        let parties = self.authority.lookup(run.irn.as_str()).await?;
        let offline = |whose: &str| Trouble::AccessPoint(format!("the {whose}'s access point is offline"));
        if !parties.supplier.online {
            return Err(offline("supplier"));
        }
        match parties.customer {
            Some(customer) if customer.online => Ok(done()),
            Some(_) => Err(offline("customer")),
            None => Err(Trouble::Refused("the invoice names no customer to transmit it to".to_owned())),
        }
    }

    async fn send(&self, run: &Run, resuming: bool) -> Checked {
        if resuming && let Some(by) = self.happened(run, was_sent).await? {
            return Ok(known(by));
        }
        match self.authority.transmit(run.irn.as_str()).await {
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                settle(unknown, self.happened(run, was_sent).await).map(known)
            }
            answer => answered(answer),
        }
    }

    /// The authority keeps one report for an IRN, the last, and nothing can be asked about it. So what is unknown
    /// is sent again as it was: the content of a run cannot change once it may have been sent.
    async fn report(&self, run: &Run, resuming: bool) -> Checked {
        reported(self.authority.report(&run.document).await, resuming)
    }

    /// What stands already is not sent: the authority would refuse it.
    async fn update_payment(&self, run: &Run, resuming: bool) -> Checked {
        let unreadable = || Trouble::Refused("the run holds no payment status".to_owned());
        let wanted = RelayedPayment::of(&run.document).ok_or_else(unreadable)?.payment_status.as_str();
        let stands = |sighting: &Sighting| sighting.payment_status.as_deref() == Some(wanted);
        match self.happened(run, stands).await? {
            Some(by) if resuming => return Ok(known(by)),
            Some(by) => return Ok(Outcome::Unchanged(by)),
            None => {}
        }
        match self.authority.update_payment(run.irn.as_str(), wanted, None).await {
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                settle(unknown, self.happened(run, stands).await).map(known)
            }
            answer => answered(answer),
        }
    }
}

fn was_sent(sighting: &Sighting) -> bool {
    sighting.transmitted == Some(true)
}

/// What was signed and is not known any more will not be known by waiting.
fn settled(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Call(AuthorityFailure::NotFound { message }) => Trouble::Refused(message),
        other => other,
    }
}

/// Where an earlier try may have arrived, the word that it has is as good as a yes.
fn reported(answer: Result<(), AuthorityFailure>, resuming: bool) -> Checked {
    let says_so = |message: &str| message.to_lowercase().contains("already reported");
    match answer {
        Err(AuthorityFailure::Refused { message, .. }) if resuming && says_so(&message) => Ok(done()),
        answer => answered(answer),
    }
}

fn done() -> Outcome {
    known(ResolvedBy::Answer)
}

fn known(by: ResolvedBy) -> Outcome {
    Outcome::Done { by, qr_code: None }
}

fn answered(answer: Result<(), AuthorityFailure>) -> Checked {
    answer.map(|()| done()).map_err(Trouble::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_is_there_already_is_done_only_where_it_may_be_ours() {
        let refused = |message: &str| {
            Err(AuthorityFailure::Refused {
                status: 409,
                message: message.to_owned(),
                field_path: None,
                authority_error: None,
            })
        };
        let said = |message: &str, resuming| match reported(refused(message), resuming) {
            Ok(Outcome::Done { by, .. }) => by.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(said("Invoice already reported", true), "answer");
        assert_eq!(said("invoice already reported", false), "Err(Refused(\"invoice already reported\"))");
        assert_eq!(said("tin is unknown", true), "Err(Refused(\"tin is unknown\"))");
        assert!(matches!(reported(Ok(()), true), Ok(Outcome::Done { by: ResolvedBy::Answer, .. })));
    }
}
