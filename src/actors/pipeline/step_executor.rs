//! Executes one step: calls the authority and interprets the answer. If an earlier call of the step has an unknown
//! outcome, the authority is first asked for that outcome.

use authority_client::{Authority, AuthorityFailure, Cause, CryptoKeys, IrnCheck};
use jiff::Timestamp;

use crate::actors::pipeline::remote_status::RemoteStatus;
use crate::actors::pipeline::resolve_unknown::resolve_unknown;
use crate::domain::payment::RelayedPayment;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::pipeline::{NO_CUSTOMER_MESSAGE, ResolvedBy, Run, RunPayload, Step};
use crate::store::Store;

/// A step that succeeded.
#[derive(Debug)]
pub(super) enum ExecutedStep {
    Done {
        by: ResolvedBy,
        qr_code: Option<String>,
    },
    /// The authority already had the wanted state, so nothing was sent.
    Unchanged(ResolvedBy),
}

/// Why a step failed.
#[derive(Debug)]
pub(super) enum StepError {
    /// The authority refused the step, or the step was refused locally before anything was sent.
    Refused(String),
    /// The authority says that it is not healthy, or refuses the health check.
    Health,
    /// The access point of the supplier or of the customer is offline. The text says which.
    AccessPoint(String),
    /// The step cannot continue before an operator has looked into it.
    NeedsOperator(String),
    Call(AuthorityFailure),
}

impl From<AuthorityFailure> for StepError {
    fn from(failure: AuthorityFailure) -> Self {
        match failure {
            AuthorityFailure::Refused { message, .. } => Self::Refused(message),
            AuthorityFailure::Retryable {
                reason: Cause::Offline { message },
            } => Self::AccessPoint(message),
            other => Self::Call(other),
        }
    }
}

pub(super) type ExecutionResult = Result<ExecutedStep, StepError>;

pub(super) struct StepExecutor<'a> {
    pub(super) authority: &'a Authority,
    pub(super) keys: Option<&'a CryptoKeys>,
    pub(super) store: &'a Store,
}

impl StepExecutor<'_> {
    /// Executes a step of a run. `resuming` is true if an earlier call of the step has an unknown outcome.
    pub(super) async fn execute_step(
        &self,
        run: &Run,
        step: Step,
        resuming: bool,
        now: Timestamp,
    ) -> ExecutionResult {
        match (step, &run.payload) {
            (Step::IrnCheck, RunPayload::Submit(document)) => self.check_irn(run, document).await,
            // A document that the authority has already signed needs no check.
            (Step::DataCheck, RunPayload::Submit(_)) if run.is_resolved_by_query() => {
                Ok(done_step())
            }
            (Step::DataCheck, RunPayload::Submit(document)) => {
                execution_result(self.authority.validate(document.as_json()).await)
            }
            (Step::Sign, RunPayload::Submit(document)) => {
                self.sign_document(run, document, resuming || run.is_resolved_by_query(), now)
                    .await
            }
            (Step::Confirm, RunPayload::Submit(_)) => self.confirm_signature(run).await,
            (Step::Health | Step::AccessPoints, RunPayload::Transmit)
                if run.progress.intent.is_some() =>
            {
                self.check_unless_transmitted(run, step).await
            }
            (Step::Health | Step::AccessPoints, RunPayload::Transmit) => {
                self.check_reachability(run, step).await
            }
            (Step::Send, RunPayload::Transmit) => self
                .send_invoice(run, resuming)
                .await
                .map_err(refuse_if_not_found),
            (Step::Report, RunPayload::Report(_)) => self
                .send_report(run, resuming)
                .await
                .map_err(refuse_if_not_found),
            (Step::Payment, RunPayload::Payment(payment)) => self
                .update_payment(run, payment, resuming)
                .await
                .map_err(refuse_if_not_found),
            (step, payload) => {
                let operation = payload.operation();
                Err(StepError::Refused(format!(
                    "the operation {operation} has no step {step}"
                )))
            }
        }
    }

    /// Checks the IRN. The authority gives the same answer for a signed IRN as when it is busy. After this answer we
    /// ask whether it has signed this run's document; if so, the later steps know this from `resolved_by`.
    async fn check_irn(&self, run: &Run, document: &AuthorityDocument) -> ExecutionResult {
        let check = IrnCheck {
            invoice_reference: document.invoice_reference.clone().unwrap_or_default(),
            business_id: document.business_id.clone().unwrap_or_default(),
            irn: run.irn.to_string(),
        };
        match self.authority.validate_irn(&check).await {
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                resolve_unknown(unknown, self.resolve_signature(run).await).map(resolved_step)
            }
            answer => execution_result(answer),
        }
    }

    /// Signs the document. The QR code is made first, because an invoice without one must not be signed. If
    /// `may_be_signed` is true, an earlier call may have signed the document. So we ask the authority for the signature
    /// before the call, and again after a refusal.
    async fn sign_document(
        &self,
        run: &Run,
        document: &AuthorityDocument,
        may_be_signed: bool,
        now: Timestamp,
    ) -> ExecutionResult {
        let qr_code = self
            .keys
            .map(|keys| keys.qr_code(run.irn.as_str(), now))
            .transpose();
        let qr_code = qr_code.map_err(|error| {
            let message = error.to_string();
            if may_be_signed {
                StepError::NeedsOperator(message)
            } else {
                StepError::Refused(message)
            }
        })?;
        if may_be_signed && let Some(by) = self.resolve_signature(run).await? {
            return Ok(ExecutedStep::Done { by, qr_code });
        }
        let by = match self.authority.sign(document.as_json()).await {
            Ok(()) => ResolvedBy::Answer,
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                resolve_unknown(unknown, self.resolve_signature(run).await)?
            }
            Err(refusal) if refusal.is_final() && may_be_signed => self
                .resolve_signature(run)
                .await?
                .ok_or_else(|| StepError::from(refusal))?,
            Err(failure) => return Err(failure.into()),
        };
        Ok(ExecutedStep::Done { by, qr_code })
    }

    /// Checks that the authority knows the signature. The invoice is already signed, so this step never fails with a
    /// refusal.
    async fn confirm_signature(&self, run: &Run) -> ExecutionResult {
        match self.resolve_by_status(run, |_| true).await? {
            Some(ResolvedBy::Confirm) => Ok(done_step()),
            Some(by) => Ok(resolved_step(by)),
            None => {
                let message = "the authority does not know the IRN".to_owned();
                Err(StepError::Call(AuthorityFailure::NotFound { message }))
            }
        }
    }

    /// Asks the authority whether the invoice was already transmitted. If not, checks whether the receiver can be
    /// reached.
    async fn check_unless_transmitted(&self, run: &Run, step: Step) -> ExecutionResult {
        match self.resolve_by_status(run, was_transmitted).await? {
            Some(by) => Ok(resolved_step(by)),
            None => self.check_reachability(run, step).await,
        }
    }

    async fn check_reachability(&self, run: &Run, step: Step) -> ExecutionResult {
        if step == Step::Health {
            self.check_health().await
        } else {
            self.check_access_points(run)
                .await
                .map_err(refuse_if_not_found)
        }
    }

    /// Asks whether the authority is healthy. A refusal counts as "down", because it cannot be about the run's
    /// document: the health check contains no document.
    async fn check_health(&self) -> ExecutionResult {
        match self.authority.is_system_healthy().await {
            Ok(true) => Ok(done_step()),
            Ok(false) => Err(StepError::Health),
            Err(failure) if failure.is_final() => Err(StepError::Health),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn check_access_points(&self, run: &Run) -> ExecutionResult {
        let irn = run.irn.as_str();
        let parties = self.authority.look_up_parties(irn).await?;
        let offline =
            |whose: &str| StepError::AccessPoint(format!("the {whose}'s access point is offline"));
        if !parties.supplier.is_online {
            return Err(offline("supplier"));
        }
        match parties.customer {
            Some(customer) if customer.is_online => Ok(done_step()),
            Some(_) => Err(offline("customer")),
            None => Err(StepError::Refused(NO_CUSTOMER_MESSAGE.to_owned())),
        }
    }

    async fn send_invoice(&self, run: &Run, resuming: bool) -> ExecutionResult {
        if resuming && let Some(by) = self.resolve_by_status(run, was_transmitted).await? {
            return Ok(resolved_step(by));
        }
        let answer = self.authority.transmit(run.irn.as_str()).await;
        self.resolve_answer(run, answer, resuming, was_transmitted)
            .await
    }

    /// Sends the report, even if an earlier call has an unknown outcome. The authority cannot be asked whether it has a
    /// report, but it keeps only the last report for an IRN, so a repetition does no harm.
    async fn send_report(&self, run: &Run, resuming: bool) -> ExecutionResult {
        report_result(self.authority.report(&run.document()).await, resuming)
    }

    /// Sends the payment status, unless the authority already has it and would therefore refuse the call.
    async fn update_payment(
        &self,
        run: &Run,
        payment: &RelayedPayment,
        resuming: bool,
    ) -> ExecutionResult {
        let wanted = payment.payment_status.as_str();
        let stands = |status: &RemoteStatus| status.payment_status.as_deref() == Some(wanted);
        match self.resolve_by_status(run, stands).await? {
            Some(by) if resuming => return Ok(resolved_step(by)),
            Some(by) => return Ok(ExecutedStep::Unchanged(by)),
            None => {}
        }
        let irn = run.irn.as_str();
        let answer = self.authority.update_payment(irn, wanted, None).await;
        self.resolve_answer(run, answer, resuming, stands).await
    }

    /// Returns the result of a call with an effect. If the call's outcome is unknown, asks the authority for the
    /// invoice's status, from which `shows_effect` decides whether the call took effect. If an earlier call may have
    /// taken effect (`resuming`), also does so after a refusal: the earlier call may have taken effect only after the
    /// authority was last asked, and may be the reason for the refusal.
    async fn resolve_answer(
        &self,
        run: &Run,
        answer: Result<(), AuthorityFailure>,
        resuming: bool,
        shows_effect: impl Fn(&RemoteStatus) -> bool,
    ) -> ExecutionResult {
        match answer {
            Err(unknown @ AuthorityFailure::Unknown { .. }) => {
                resolve_unknown(unknown, self.resolve_by_status(run, shows_effect).await)
                    .map(resolved_step)
            }
            Err(refusal) if refusal.is_final() && resuming => self
                .resolve_by_status(run, shows_effect)
                .await?
                .map(resolved_step)
                .ok_or_else(|| StepError::from(refusal)),
            answer => execution_result(answer),
        }
    }
}

fn was_transmitted(status: &RemoteStatus) -> bool {
    status.transmitted == Some(true)
}

/// Turns "not found" into a refusal. The invoice was signed before, so an authority that does not find it now will not
/// find it later, and a retry is useless.
fn refuse_if_not_found(error: StepError) -> StepError {
    match error {
        StepError::Call(AuthorityFailure::NotFound { message }) => StepError::Refused(message),
        other => other,
    }
}

/// Returns the result of a call that sent a report. If an earlier call has an unknown outcome (`resuming`), the refusal
/// "already reported" counts as success, because the earlier call may have sent this report.
fn report_result(answer: Result<(), AuthorityFailure>, resuming: bool) -> ExecutionResult {
    match answer {
        Err(AuthorityFailure::Refused { message, .. })
            if resuming && message.to_lowercase().contains("already reported") =>
        {
            Ok(done_step())
        }
        answer => execution_result(answer),
    }
}

fn done_step() -> ExecutedStep {
    resolved_step(ResolvedBy::Answer)
}

fn resolved_step(by: ResolvedBy) -> ExecutedStep {
    ExecutedStep::Done { by, qr_code: None }
}

fn execution_result(answer: Result<(), AuthorityFailure>) -> ExecutionResult {
    answer.map(|()| done_step()).map_err(StepError::from)
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
            })
        };
        let said = |message: &str, resuming| match report_result(refused(message), resuming) {
            Ok(ExecutedStep::Done { by, .. }) => by.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(said("Invoice already reported", true), "answer");
        assert_eq!(
            said("invoice already reported", false),
            "Err(Refused(\"invoice already reported\"))"
        );
        assert_eq!(
            said("tin is unknown", true),
            "Err(Refused(\"tin is unknown\"))"
        );
        assert!(matches!(
            report_result(Ok(()), true),
            Ok(ExecutedStep::Done {
                by: ResolvedBy::Answer,
                ..
            })
        ));
    }
}
