//! Stores quarantined commands and replays them. Only the creation of one invoice can be replayed: its invoice number
//! shows whether the sender has sent it again since.

use std::time::Duration;

use database::StoreError;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use supervision::{Tree, UnstoredCommand};
use timing::CommandId;

use crate::actors::kinds;
use crate::actors::taxpayer::commands::{CreateInvoice, CreatedInvoice};
use crate::actors::taxpayer::handle::{CommandEnvelope, TaxpayerError, TaxpayerHandle};
use crate::domain::invoice::batch::Duplicate;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::ids::{TaxpayerId, parse_id};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::quarantine::{END_UNKNOWN_MESSAGE, QuarantineState, QuarantinedCommand};
use crate::store::Store;
use crate::store::operations::quarantine;

/// The interval at which quarantined commands are stored.
pub const STORE_EVERY: Duration = Duration::from_millis(500);
/// The maximum size of kept contents in bytes. Without a bound, the quarantine could become large.
const CONTENTS_BYTES_MAX: usize = 256 * 1024;
const NOT_KEPT_MESSAGE: &str = "The command was replayed or dropped before";

/// Returns what a replay of the command needs, as JSON. `None` if the command cannot be replayed.
pub(super) fn replay_contents(envelope: &CommandEnvelope) -> Option<SecretString> {
    let contents = envelope.command.contents_for_replay()?;
    (contents.len() <= CONTENTS_BYTES_MAX).then(|| contents.into())
}

/// Stores all quarantined commands that are not stored yet. After an error, the next call stores the rest. If the
/// process ends before that, nothing accepted is lost: the senders got an error, and each command is in the log.
pub async fn store_all(store: &Store, tree: &Tree) -> Result<(), StoreError> {
    while let Some(unstored) = tree.quarantine().oldest_unstored_command() {
        let contents = unstored.contents.as_ref().map(ExposeSecret::expose_secret);
        quarantine::put_command(store, &to_quarantined_command(&unstored), contents).await?;
        tree.quarantine().mark_stored(unstored.record.reference);
    }
    Ok(())
}

fn to_quarantined_command(unstored: &UnstoredCommand) -> QuarantinedCommand {
    let record = &unstored.record;
    // The actor of a taxpayer has the taxpayer's id as its name.
    let number = (unstored.kind == kinds::TAXPAYER)
        .then(|| parse_id(&record.actor))
        .flatten();
    QuarantinedCommand {
        reference: record.reference,
        actor: record.actor.clone(),
        command: record.command.clone(),
        taxpayer_id: number.map(TaxpayerId),
        at: unstored.at,
        panic: record.panic.clone(),
        state: QuarantineState::Kept,
        moved_at: None,
        result: None,
        has_contents: unstored.contents.is_some(),
    }
}

impl TaxpayerHandle {
    /// Executes a quarantined command again on behalf of an operator, at most once: the command is taken out of the
    /// quarantine before it is sent. If it certainly changed nothing, it is put back.
    pub async fn replay_quarantined(
        &self,
        reference: CommandId,
        by: &OperatorRequest,
        now: Timestamp,
    ) -> Result<QuarantinedCommand, TaxpayerError> {
        let found = self.quarantined_command(reference).await?;
        let (taxpayer, create) = self.replayable_command(&found).await?;
        self.take_out_command(&found, QuarantineState::Replayed, by, now)
            .await?;
        let created = self.send(taxpayer, create).await;
        let (state, result) = replay_result(&created);
        quarantine::record_replay_result(self.store(), reference, state, &result).await?;
        self.quarantined_command(reference).await
    }

    /// Drops a quarantined command on behalf of an operator.
    pub async fn drop_quarantined(
        &self,
        reference: CommandId,
        by: &OperatorRequest,
        now: Timestamp,
    ) -> Result<QuarantinedCommand, TaxpayerError> {
        let found = self.quarantined_command(reference).await?;
        self.take_out_command(&found, QuarantineState::Dropped, by, now)
            .await?;
        self.quarantined_command(reference).await
    }

    async fn quarantined_command(
        &self,
        reference: CommandId,
    ) -> Result<QuarantinedCommand, TaxpayerError> {
        let found = quarantine::find_command_by_reference(self.store(), reference).await?;
        found.ok_or(TaxpayerError::Refused(Refusal::CommandNotFound))
    }

    async fn take_out_command(
        &self,
        found: &QuarantinedCommand,
        to: QuarantineState,
        by: &OperatorRequest,
        now: Timestamp,
    ) -> Result<(), TaxpayerError> {
        let is_taken = quarantine::take_command(self.store(), found, to, by, now).await?;
        is_taken
            .then_some(())
            .ok_or(TaxpayerError::Refused(Refusal::CommandNotReplayable(
                NOT_KEPT_MESSAGE,
            )))
    }

    async fn replayable_command(
        &self,
        found: &QuarantinedCommand,
    ) -> Result<(TaxpayerId, CreateInvoice), TaxpayerError> {
        let refused = || TaxpayerError::Refused(Refusal::CommandNotReplayable(found.guidance()));
        let taxpayer = found
            .taxpayer_id
            .filter(|_| found.may_replay())
            .ok_or_else(refused)?;
        let contents = quarantine::command_contents(self.store(), found.reference)
            .await?
            .ok_or_else(refused)?;
        // The error is left out, because its text could quote the contents.
        let draft = strict_json::from_trusted(&contents).map_err(|_| StoreError::Corrupt {
            table: "quarantine",
            id: found.reference.to_string(),
            reason: "the contents are not those of a create".to_owned(),
        })?;
        Ok((taxpayer, CreateInvoice(draft)))
    }
}

/// Returns the state of the command after its replay, and the result in words.
fn replay_result(created: &Result<CreatedInvoice, TaxpayerError>) -> (QuarantineState, String) {
    match created {
        Ok(CreatedInvoice {
            invoice,
            duplicate: None,
        }) => (
            QuarantineState::Replayed,
            format!("The invoice {} was created.", invoice.irn),
        ),
        Ok(CreatedInvoice {
            invoice,
            duplicate: Some(duplicate),
        }) => {
            let content = match duplicate {
                Duplicate::Identical => "the same",
                Duplicate::Different => "other",
            };
            let text = format!(
                "Nothing was created: its sender has created the invoice {} since, with {content} content.",
                invoice.irn
            );
            (QuarantineState::Replayed, text)
        }
        Err(TaxpayerError::Refused(refusal)) => (
            QuarantineState::Kept,
            format!("The replay was refused: {refusal}."),
        ),
        Err(
            TaxpayerError::Busy { .. } | TaxpayerError::Overloaded { .. } | TaxpayerError::Paused,
        ) => (
            QuarantineState::Kept,
            "The replay did not start: too much waits, or the taxpayer is paused. Try again."
                .to_owned(),
        ),
        // Only `Unsettled`, a commit without an answer, leaves open whether the invoice exists.
        Err(TaxpayerError::Store(error)) if !matches!(error, StoreError::Unsettled) => (
            QuarantineState::Kept,
            "The replay failed in the database, and nothing was created. Try again.".to_owned(),
        ),
        Err(TaxpayerError::Quarantined { reference }) => (
            QuarantineState::Replayed,
            format!("It panicked again and was put aside as {reference}."),
        ),
        Err(
            TaxpayerError::Store(_)
            | TaxpayerError::Interrupted { .. }
            | TaxpayerError::AlreadyProcessed,
        ) => (QuarantineState::Replayed, END_UNKNOWN_MESSAGE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::actors::taxpayer::commands::CancelReplay;
    use crate::actors::taxpayer::handle::OnceClaim;
    use crate::actors::taxpayer::tests::{ID, TestTaxpayers, claim, draft};
    use crate::domain::access::claim::StoredResponse;
    use crate::store::testing::stores;

    const BY: OperatorRequest = OperatorRequest {
        operator_id: 1,
        reason: None,
    };
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Has a create panic twice. Returns the reference that its sender got.
    async fn quarantine_create(app: &TestTaxpayers, number: &str) -> CommandId {
        let panics = |_: &CreatedInvoice| -> Option<StoredResponse> { panic!("<b>the answer</b>") };
        let poison = OnceClaim {
            claim: claim(number, b"1"),
            render: Some(Arc::new(panics)),
        };
        let failed = app
            .taxpayers
            .send_once(ID, CreateInvoice(draft(number, 10)), Some(poison))
            .await;
        let Err(TaxpayerError::Quarantined { reference }) = failed else {
            panic!("{failed:?}")
        };
        store_all(&app.test.store, &app.tree).await.unwrap();
        reference
    }

    #[actix_rt::test]
    async fn a_create_is_replayed_once() {
        for test in stores().await {
            let app = TestTaxpayers::with_taxpayer(test).await;
            let replay =
                async |reference| app.taxpayers.replay_quarantined(reference, &BY, NOW).await;
            let reference = quarantine_create(&app, "INV-1").await;
            let (one, other) = tokio::join!(replay(reference), replay(reference));
            let (replayed, refused) = if one.is_ok() {
                (one, other)
            } else {
                (other, one)
            };
            let replayed = replayed.unwrap();
            assert_eq!(replayed.state, QuarantineState::Replayed);
            assert!(replayed.result.unwrap().ends_with("was created."));
            assert!(matches!(
                refused,
                Err(TaxpayerError::Refused(Refusal::CommandNotReplayable(_)))
            ));
            let again = app
                .taxpayers
                .send(ID, CreateInvoice(draft("INV-1", 10)))
                .await
                .unwrap();
            assert_eq!(
                again.duplicate,
                Some(Duplicate::Identical),
                "the replay has created it as it was sent"
            );
            assert_eq!(app.verify_log().await, 1);
            app.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_replay_creates_nothing_if_the_sender_has_sent_the_invoice_again() {
        for test in stores().await {
            let app = TestTaxpayers::with_taxpayer(test).await;
            let reference = quarantine_create(&app, "INV-2").await;
            app.taxpayers
                .send(ID, CreateInvoice(draft("INV-2", 7)))
                .await
                .unwrap();
            let late = app
                .taxpayers
                .replay_quarantined(reference, &BY, NOW)
                .await
                .unwrap()
                .result
                .unwrap();
            assert!(
                late.contains("its sender has created the invoice INV"),
                "{late}"
            );
            assert_eq!(app.verify_log().await, 1);
            app.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_replay_that_the_process_did_not_survive_is_not_made_again() {
        for test in stores().await {
            let app = TestTaxpayers::with_taxpayer(test).await;
            let reference = quarantine_create(&app, "INV-1").await;
            let found = app.taxpayers.quarantined_command(reference).await.unwrap();
            assert_eq!(
                (found.taxpayer_id, found.command.as_str()),
                (Some(ID), "create")
            );
            assert!(
                found.panic.starts_with("<b>the answer</b>"),
                "{}",
                found.panic
            );
            // The process ends here: the command is taken, and nothing was sent.
            app.taxpayers
                .take_out_command(&found, QuarantineState::Replayed, &BY, NOW)
                .await
                .unwrap();
            let refused = app.taxpayers.replay_quarantined(reference, &BY, NOW).await;
            assert!(
                matches!(refused, Err(TaxpayerError::Refused(_))),
                "{refused:?}"
            );
            let left = app.taxpayers.quarantined_command(reference).await.unwrap();
            assert_eq!(left.result.as_deref(), Some(END_UNKNOWN_MESSAGE));
            let dropped = app.taxpayers.drop_quarantined(reference, &BY, NOW).await;
            assert!(
                matches!(dropped, Err(TaxpayerError::Refused(_))),
                "{dropped:?}"
            );
            app.close().await;
        }
    }

    #[test]
    fn a_replay_that_certainly_created_nothing_is_put_back() {
        for (error, is_put_back) in [
            (TaxpayerError::Store(StoreError::Locked), true),
            (TaxpayerError::Store(StoreError::NotCommitted), true),
            (
                TaxpayerError::Store(StoreError::Duplicate("id".to_owned())),
                true,
            ),
            (TaxpayerError::Paused, true),
            (TaxpayerError::Store(StoreError::Unsettled), false),
            (
                TaxpayerError::Interrupted {
                    command_id: CommandId::nil(),
                },
                false,
            ),
        ] {
            let failure = error.to_string();
            let (state, result) = replay_result(&Err(error));
            let is_kept = state == QuarantineState::Kept;
            assert_eq!(is_kept, is_put_back, "{failure}: {result}");
        }
    }

    #[test]
    fn only_creates_of_a_moderate_size_are_kept_and_they_are_not_printed() {
        let create = CommandEnvelope::new(CreateInvoice(draft("INV-1", 10)), None, None);
        let kept = replay_contents(&create).unwrap();
        assert!(!format!("{kept:?}").contains("customer.example"));
        let mut large = draft("INV-2", 10);
        large.customer.name = "x".repeat(CONTENTS_BYTES_MAX);
        assert!(replay_contents(&CommandEnvelope::new(CreateInvoice(large), None, None)).is_none());
        let other = CommandEnvelope::new(CancelReplay(uuid::Uuid::nil()), None, None);
        assert!(replay_contents(&other).is_none());
    }
}
