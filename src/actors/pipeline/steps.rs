//! One step: the call, and what its answer means. An effectful call whose outcome is unknown, now or in an
//! earlier life of this process, is asked about before it is made again; nothing is guessed.

use jiff::Timestamp;
use serde_json::Value;

use crate::authority::{Authority, Confirmation, CryptoKeys, Failure, IrnCheck};
use crate::domain::payment::PaymentOrder;
use crate::domain::pipeline::{ResolvedBy, Run, Step};

/// What a call came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Done { by: ResolvedBy, qr_code: Option<String> },
    Failed(Trouble),
}

/// Why a step is not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The authority's decision, or ours before anything was sent.
    Refused(String),
    Health,
    AccessPoint(&'static str),
    Call(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { message, .. } => Self::Refused(message),
            other => Self::Call(other),
        }
    }
}

type Checked = Result<Outcome, Trouble>;

/// Makes calls for runs.
pub(super) struct Caller<'a> {
    pub(super) authority: &'a Authority,
    pub(super) keys: Option<&'a CryptoKeys>,
}

impl Caller<'_> {
    /// Calls a step of a run. `resuming` says that it may have been called before with no known outcome.
    pub(super) async fn call(&self, run: &Run, step: Step, resuming: bool, now: Timestamp) -> Outcome {
        let outcome = match step {
            Step::IrnCheck => self.irn_check(run).await,
            Step::DataCheck => answered(self.authority.validate(&run.document).await),
            Step::Sign => self.sign(run, resuming, now).await,
            Step::Confirm => {
                self.authority.confirm(run.irn.as_str()).await.map(|_| done()).map_err(Trouble::from)
            }
            Step::Health => self.health().await,
            Step::AccessPoints => self.access_points(run).await.map_err(settled),
            Step::Send => self.send(run, resuming).await.map_err(settled),
            Step::Receipt => Ok(done()),
            Step::Report => self.report(run, resuming).await.map_err(settled),
            Step::Payment => self.update_payment(run, resuming).await.map_err(settled),
        };
        outcome.unwrap_or_else(Outcome::Failed)
    }

    /// The authority answers a signed IRN and a busy moment with the same words: confirm tells them apart.
    async fn irn_check(&self, run: &Run) -> Checked {
        let text =
            |field: &str| run.document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let check = IrnCheck {
            invoice_reference: text("invoice_reference"),
            business_id: text("business_id"),
            irn: run.irn.to_string(),
        };
        match self.authority.validate_irn(&check).await {
            Err(unknown @ Failure::Unknown { .. }) => self.resolve(run, unknown, |_| true, None).await,
            answer => answered(answer),
        }
    }

    /// The QR code is made first: an IRN that has none must not be signed.
    async fn sign(&self, run: &Run, resuming: bool, now: Timestamp) -> Checked {
        let qr_code = self.keys.map(|keys| keys.qr_code(run.irn.as_str(), now)).transpose();
        let qr_code = qr_code.map_err(|error| Trouble::Refused(error.to_string()))?;
        if resuming && let Some(outcome) = self.look_up(run, |_| true, qr_code.clone()).await? {
            return Ok(outcome);
        }
        match self.authority.sign(&run.document).await {
            Ok(()) => Ok(Outcome::Done { by: ResolvedBy::Answer, qr_code }),
            Err(unknown @ Failure::Unknown { .. }) => self.resolve(run, unknown, |_| true, qr_code).await,
            Err(failure) => Err(failure.into()),
        }
    }

    async fn health(&self) -> Checked {
        if self.authority.system_healthy().await? { Ok(done()) } else { Err(Trouble::Health) }
    }

    async fn access_points(&self, run: &Run) -> Checked {
        let parties = self.authority.lookup(run.irn.as_str()).await?;
        if !parties.supplier.online {
            return Err(Trouble::AccessPoint("the supplier's access point is offline"));
        }
        match parties.customer {
            Some(customer) if customer.online => Ok(done()),
            Some(_) => Err(Trouble::AccessPoint("the customer's access point is offline")),
            None => Err(Trouble::Refused("the invoice names no customer to transmit it to".to_owned())),
        }
    }

    async fn send(&self, run: &Run, resuming: bool) -> Checked {
        let sent = |confirmation: &Confirmation| confirmation.transmitted;
        if resuming && let Some(outcome) = self.look_up(run, sent, None).await? {
            return Ok(outcome);
        }
        match self.authority.transmit(run.irn.as_str()).await {
            Err(unknown @ Failure::Unknown { .. }) => self.resolve(run, unknown, sent, None).await,
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
        let wanted = PaymentOrder::of(&run.document).ok_or_else(unreadable)?.payment_status.as_str();
        let stands = |confirmation: &Confirmation| confirmation.payment_status == wanted;
        if stands(&self.authority.confirm(run.irn.as_str()).await?) {
            let by = if resuming { ResolvedBy::Confirm } else { ResolvedBy::Unchanged };
            return Ok(Outcome::Done { by, qr_code: None });
        }
        match self.authority.update_payment(run.irn.as_str(), wanted, None).await {
            Err(unknown @ Failure::Unknown { .. }) => self.resolve(run, unknown, stands, None).await,
            answer => answered(answer),
        }
    }

    /// Asks what an unknown outcome was. Where it did not happen, the failure stands and is tried again.
    async fn resolve(
        &self,
        run: &Run,
        unknown: Failure,
        happened: impl Fn(&Confirmation) -> bool,
        qr_code: Option<String>,
    ) -> Checked {
        match self.look_up(run, happened, qr_code).await? {
            Some(outcome) => Ok(outcome),
            None => Err(unknown.into()),
        }
    }

    async fn look_up(
        &self,
        run: &Run,
        happened: impl Fn(&Confirmation) -> bool,
        qr_code: Option<String>,
    ) -> Result<Option<Outcome>, Trouble> {
        match self.authority.confirm(run.irn.as_str()).await {
            Ok(confirmation) if happened(&confirmation) => {
                Ok(Some(Outcome::Done { by: ResolvedBy::Confirm, qr_code }))
            }
            Ok(_) | Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// What was signed and is not known any more will not be known by waiting.
fn settled(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Call(Failure::NotFound { message }) => Trouble::Refused(message),
        other => other,
    }
}

/// Where an earlier try may have arrived, the word that it has is as good as a yes.
fn reported(answer: Result<(), Failure>, resuming: bool) -> Checked {
    let says_so = |message: &str| message.to_lowercase().contains("already reported");
    match answer {
        Err(Failure::Refused { message, .. }) if resuming && says_so(&message) => {
            Ok(Outcome::Done { by: ResolvedBy::Duplicate, qr_code: None })
        }
        answer => answered(answer),
    }
}

fn done() -> Outcome {
    Outcome::Done { by: ResolvedBy::Answer, qr_code: None }
}

fn answered(answer: Result<(), Failure>) -> Checked {
    answer.map(|()| done()).map_err(Trouble::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_is_there_already_is_done_only_where_it_may_be_ours() {
        let refused = |message: &str| {
            Err(Failure::Refused {
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
        assert_eq!(said("Invoice already reported", true), "duplicate");
        assert_eq!(said("invoice already reported", false), "Err(Refused(\"invoice already reported\"))");
        assert_eq!(said("tin is unknown", true), "Err(Refused(\"tin is unknown\"))");
        assert!(matches!(reported(Ok(()), true), Ok(Outcome::Done { by: ResolvedBy::Answer, .. })));
    }
}
