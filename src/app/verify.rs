//! The command `verify`: checks one or all event chains, and compares them with signed checkpoints.

use std::collections::HashMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::Duration;

use database::StoreError;
use jiff::Timestamp;
use timing::clock::{Clock, SystemClock};

use crate::app::checkpoint::read_signing_key;
use crate::app::database::open_existing;
use crate::app::error::StartError;
use crate::app::verification_report::{ChainDifference, CheckpointDoubt, VerificationReport};
use crate::config::Settings;
use crate::domain::events::checkpoint::{
    Checkpoint, CheckpointPublicKey, LastCheckpointLine, TaxpayerLogHead,
};
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::events;
use crate::store::events::checkpoint_file::{CheckpointFileError, CheckpointReader};

/// The maximum number of events that are read at a time. If events are large, fewer are read at a time.
const PER_PAGE: usize = 1_000;

/// The checkpoint file to compare with, and the key that verifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSource {
    pub file: PathBuf,
    /// The public key of the checkpoints. `None` means the public half of the key in `checkpoints.key_file`.
    pub public_key: Option<String>,
    /// A checkpoint that was in the file before, and must still be in it.
    pub at_least: Option<LastCheckpointLine>,
}

/// A checkpoint file to compare with, and the demands that the file must meet.
struct CheckpointComparison {
    reader: CheckpointReader,
    at_least: Option<LastCheckpointLine>,
    /// Each event from before this time must be included in a checkpoint.
    covered_until: Timestamp,
}

/// Checks that no event was changed, lost or inserted, and that each chain contains its checkpoints.
pub async fn verify(
    settings: Settings,
    taxpayer: Option<i64>,
    source: Option<CheckpointSource>,
) -> Result<VerificationReport, StartError> {
    let comparison = source
        .map(|source| open_comparison(&settings, source))
        .transpose()?;
    let store = open_existing(&settings).await?;
    let report = build_report(&store, taxpayer.map(TaxpayerId), comparison).await;
    store.close().await;
    report
}

fn open_comparison(
    settings: &Settings,
    source: CheckpointSource,
) -> Result<CheckpointComparison, StartError> {
    let key = match (source.public_key, &settings.checkpoints.key_file) {
        (Some(text), _) => CheckpointPublicKey::parse(&text).map_err(StartError::PublicKey)?,
        (None, Some(path)) => read_signing_key(path)?.public_key(),
        (None, None) => return Err(StartError::NoPublicKey),
    };
    let reader = CheckpointReader::open(&source.file, key)?;
    let covered_until = coverage_deadline(settings.checkpoints.every_s, SystemClock.now());
    Ok(CheckpointComparison {
        reader,
        at_least: source.at_least,
        covered_until,
    })
}

/// Returns the time up to which checkpoints must cover all events: two periods ago, so that a single late checkpoint
/// raises no alarm. If checkpoints are made on demand only, no event must be covered, so the time is `Timestamp::MIN`.
fn coverage_deadline(every_s: u64, now: Timestamp) -> Timestamp {
    let grace = Duration::from_secs(every_s).saturating_mul(2);
    if grace.is_zero() {
        Timestamp::MIN
    } else {
        now.saturating_sub(grace).unwrap_or(Timestamp::MIN)
    }
}

async fn build_report(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    comparison: Option<CheckpointComparison>,
) -> Result<VerificationReport, StartError> {
    let ids = match taxpayer {
        // A deleted taxpayer may still have checkpoints, so an unknown id is an error only without checkpoints.
        Some(id) => match taxpayers::find_by_id(store.reader(), id).await? {
            Some(taxpayer) => vec![taxpayer.id],
            None if comparison.is_some() => Vec::new(),
            None => return Err(StartError::NoTaxpayer(id.0)),
        },
        None => taxpayers::all_ids(store).await?,
    };
    let mut report = VerificationReport {
        taxpayers: ids.len(),
        ..VerificationReport::default()
    };
    let mut chain_heads = Vec::with_capacity(ids.len());
    for id in ids {
        let head = check_chain(store, id, &mut report).await?;
        chain_heads.push(TaxpayerLogHead {
            taxpayer_id: id,
            head,
        });
    }
    if let Some(comparison) = comparison {
        compare_checkpoints(store, taxpayer, comparison, &chain_heads, &mut report).await?;
    }
    Ok(report)
}

/// Checks the chain of a taxpayer's events up to its end or its first break, which is added to the report. Returns the
/// sequence and hash of the last event that fits the chain.
async fn check_chain(
    store: &Store,
    taxpayer: TaxpayerId,
    report: &mut VerificationReport,
) -> Result<LogHead, StoreError> {
    let mut head = LogHead::default();
    loop {
        let page = events::feed_page_owned_by(store, taxpayer, head.sequence, PER_PAGE).await?;
        if page.events.is_empty() {
            return Ok(head);
        }
        for event in &page.events {
            if !head.advance_if_next(event) {
                report.breaks.push((taxpayer, event.sequence));
                return Ok(head);
            }
            report.events += 1;
        }
    }
}

/// Compares each checkpoint with the events that it signs. Also checks that the file still has the checkpoints that
/// must be in it.
async fn compare_checkpoints(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    comparison: CheckpointComparison,
    chain_heads: &[TaxpayerLogHead],
    report: &mut VerificationReport,
) -> Result<(), StartError> {
    let CheckpointComparison {
        mut reader,
        at_least,
        covered_until,
    } = comparison;
    let mut covered_sequences = HashMap::new();
    let mut is_replaced = false;
    loop {
        match reader.read() {
            Ok(Some(checkpoint)) => {
                let tail = reader.last_line();
                is_replaced |= at_least
                    .as_ref()
                    .is_some_and(|line| line.number == tail.number && line != tail);
                for signed in &checkpoint.heads {
                    let newest: &mut i64 = covered_sequences.entry(signed.taxpayer_id).or_default();
                    *newest = signed.head.sequence.max(*newest);
                }
                compare_checkpoint(store, taxpayer, checkpoint, report).await?;
            }
            Ok(None) => break,
            Err(fault @ CheckpointFileError::Line { .. }) => {
                report.fault = Some(CheckpointDoubt::Unreadable(fault.to_string()));
                break;
            }
            Err(other) => return Err(other.into()),
        }
    }
    if report.fault.is_none() {
        report.fault = match at_least {
            Some(LastCheckpointLine { number, .. }) if is_replaced => {
                Some(CheckpointDoubt::Replaced(number))
            }
            Some(LastCheckpointLine {
                number: expected, ..
            }) if reader.last_line().number < expected => Some(CheckpointDoubt::Shortened {
                end: reader.last_line().number,
                expected,
            }),
            _ if reader.ends_in_incomplete_line()? => Some(CheckpointDoubt::Cut),
            _ if reader.last_line().number == 0 => Some(CheckpointDoubt::Empty),
            _ => {
                find_uncovered_event(store, chain_heads, &covered_sequences, covered_until).await?
            }
        };
    }
    report.checkpoints = Some(reader.last_line().clone());
    Ok(())
}

/// Returns an event that is in no checkpoint although it should be by now; `None` if there is no such event.
async fn find_uncovered_event(
    store: &Store,
    chain_heads: &[TaxpayerLogHead],
    covered_sequences: &HashMap<TaxpayerId, i64>,
    covered_until: Timestamp,
) -> Result<Option<CheckpointDoubt>, StoreError> {
    for TaxpayerLogHead { taxpayer_id, head } in chain_heads {
        let taxpayer = *taxpayer_id;
        let sequence = covered_sequences
            .get(&taxpayer)
            .copied()
            .unwrap_or_default();
        if sequence >= head.sequence {
            continue;
        }
        let next = events::owned_by_after(store, taxpayer, sequence, 1).await?;
        if let Some(event) = next.first().filter(|event| event.timestamp < covered_until) {
            return Ok(Some(CheckpointDoubt::Stale {
                taxpayer,
                sequence: event.sequence,
                event_time: event.timestamp,
            }));
        }
    }
    Ok(None)
}

async fn compare_checkpoint(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    checkpoint: Checkpoint,
    report: &mut VerificationReport,
) -> Result<(), StoreError> {
    let Checkpoint {
        number, mut heads, ..
    } = checkpoint;
    heads.retain(|signed| taxpayer.is_none_or(|id| id == signed.taxpayer_id));
    let stored_heads = events::stored_hashes_at(store, &heads).await?;
    for signed in heads
        .iter()
        .filter(|signed| stored_heads.get(&signed.taxpayer_id) != Some(&signed.head))
    {
        if let Entry::Vacant(first) = report.differences.entry(signed.taxpayer_id) {
            first.insert(find_difference(store, signed, number).await?);
        }
    }
    Ok(())
}

async fn find_difference(
    store: &Store,
    signed: &TaxpayerLogHead,
    number: u64,
) -> Result<ChainDifference, StoreError> {
    let sequence = signed.head.sequence;
    let end = events::log_head(store.reader(), signed.taxpayer_id)
        .await?
        .sequence;
    let is_present = !events::stored_hashes_at(store, std::slice::from_ref(signed))
        .await?
        .is_empty();
    Ok(match end {
        0 => ChainDifference::Removed { sequence, number },
        end if end < sequence => ChainDifference::Truncated {
            sequence,
            number,
            end,
        },
        _ if is_present => ChainDifference::Rewritten { sequence, number },
        _ => ChainDifference::Missing { sequence, number },
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sea_orm::ConnectionTrait;
    use serde_json::json;
    use tempfile::TempDir;
    use timing::clock::new_id;
    use tokio::sync::Mutex;

    use super::*;
    use crate::actors::checkpoint::Checkpointer;
    use crate::domain::events::checkpoint::CheckpointKey;
    use crate::domain::events::event::{EventKind, EventStamp, NewEvent};
    use crate::store::events::checkpoint_file::CheckpointFile;
    use crate::store::testing::{add_taxpayer, stores};

    fn key() -> CheckpointKey {
        CheckpointKey::parse(&STANDARD.encode([1; 32])).unwrap()
    }

    async fn execute(store: &Store, sql: &str) {
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(sql).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn append(store: &Store, id: i64, count: usize) {
        let mut head = events::log_head(store.reader(), TaxpayerId(id))
            .await
            .unwrap();
        let stamp = || EventStamp {
            id: new_id(),
            taxpayer_id: TaxpayerId(id),
            command_id: new_id(),
            trace: None,
            now: Timestamp::UNIX_EPOCH,
        };
        let new_event = || NewEvent {
            kind: EventKind::InvoiceCreated,
            irn: None,
            data: json!({ "unit_price": 500 }).to_string(),
            actor: None,
        };
        let new_events: Vec<_> = (0..count)
            .map(|_| head.append(new_event(), stamp()))
            .collect();
        let tx = store.begin().await.unwrap();
        events::append(&tx, &new_events).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Changes an amount in all events and recomputes the hashes, as somebody with write access could do.
    async fn rewrite(store: &Store, id: i64) {
        let original = events::owned_by_after(store, TaxpayerId(id), 0, PER_PAGE as u64)
            .await
            .unwrap();
        let mut head = LogHead::default();
        execute(
            store,
            &format!("DELETE FROM events WHERE taxpayer_id = {id}"),
        )
        .await;
        let stamp = |event: &crate::domain::events::event::Event| EventStamp {
            id: event.id,
            taxpayer_id: event.taxpayer_id,
            command_id: event.command_id,
            trace: event.trace,
            now: event.timestamp,
        };
        let change = |event: &crate::domain::events::event::Event| {
            let data = json!({ "unit_price": 5 }).to_string();
            head.append(
                NewEvent {
                    kind: event.kind,
                    irn: event.irn.clone(),
                    data,
                    actor: None,
                },
                stamp(event),
            )
        };
        let forged: Vec<_> = original.iter().map(change).collect();
        let tx = store.begin().await.unwrap();
        events::append(&tx, &forged).await.unwrap();
        tx.commit().await.unwrap();
    }

    struct CheckpointScene {
        directory: TempDir,
        checkpointer: Checkpointer,
    }

    impl CheckpointScene {
        fn new(store: &Store) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = CheckpointFile::new(directory.path().join("checkpoints"), key());
            let file = Arc::new(Mutex::new(file));
            let checkpointer = Checkpointer {
                store: store.clone(),
                clock: Arc::new(SystemClock),
                file,
                last: Arc::default(),
            };
            Self {
                directory,
                checkpointer,
            }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("checkpoints")
        }

        async fn verify(&self, taxpayer: Option<i64>) -> VerificationReport {
            self.verify_with(taxpayer, None, Timestamp::MIN).await
        }

        async fn verify_with(
            &self,
            taxpayer: Option<i64>,
            at_least: Option<LastCheckpointLine>,
            covered_until: Timestamp,
        ) -> VerificationReport {
            let reader = CheckpointReader::open(&self.path(), key().public_key()).unwrap();
            let comparison = CheckpointComparison {
                reader,
                at_least,
                covered_until,
            };
            let taxpayer = taxpayer.map(TaxpayerId);
            build_report(&self.checkpointer.store, taxpayer, Some(comparison))
                .await
                .unwrap()
        }

        async fn fault_report(&self) -> String {
            let report = self.verify(None).await;
            assert!(!report.is_intact(), "{report}");
            report.to_string()
        }
    }

    /// Creates three taxpayers with events, and two checkpoints. Taxpayer 1 gets more events between the checkpoints.
    async fn create_scene(store: &Store) -> CheckpointScene {
        for id in 1..=3 {
            add_taxpayer(store, id, 1).await;
            append(store, id, 5).await;
        }
        let scene = CheckpointScene::new(store);
        assert_eq!(
            scene.checkpointer.sign_grown_heads().await.unwrap().heads,
            3
        );
        append(store, 1, 5).await;
        assert_eq!(
            scene.checkpointer.sign_grown_heads().await.unwrap().heads,
            1,
            "only what has grown"
        );
        let idle = scene.checkpointer.sign_grown_heads().await.unwrap();
        assert_eq!(
            (idle.heads, idle.tail.number),
            (0, 2),
            "nothing to sign, no line"
        );
        let report = scene.verify(None).await;
        assert!(report.is_intact(), "{report}");
        assert!(
            report.to_string().contains("compared with 2 checkpoints"),
            "{report}"
        );
        scene
    }

    #[actix_rt::test]
    async fn a_chain_that_was_rewritten_with_its_hashes_is_named() {
        for test in stores().await {
            let scene = create_scene(&test.store).await;
            rewrite(&test.store, 2).await;
            let alone = build_report(&test.store, None, None).await.unwrap();
            assert!(alone.is_intact(), "without checkpoints it passes: {alone}");
            let text = scene.fault_report().await;
            assert!(
                text.contains(
                    "the chain of taxpayer 2 was rewritten: event 5 is not the one of checkpoint 1"
                ),
                "{text}"
            );
            assert!(
                !text.contains("taxpayer 1 ") && !text.contains("taxpayer 3 "),
                "{text}"
            );
            assert!(scene.verify(Some(1)).await.is_intact());
            assert!(!scene.verify(Some(2)).await.is_intact());
            // The chain of taxpayer 2 has grown, but it was rewritten, so the checkpointer does not sign it.
            append(&test.store, 2, 1).await;
            let run = scene.checkpointer.sign_grown_heads().await.unwrap();
            assert_eq!((run.heads, run.broken), (0, vec![TaxpayerId(2)]));
        }
    }

    #[actix_rt::test]
    async fn a_chain_that_was_cut_or_removed_is_named() {
        for test in stores().await {
            let scene = create_scene(&test.store).await;
            execute(
                &test.store,
                "DELETE FROM events WHERE taxpayer_id = 1 AND sequence > 6",
            )
            .await;
            execute(&test.store, "DELETE FROM events WHERE taxpayer_id = 3").await;
            execute(&test.store, "DELETE FROM taxpayers WHERE id = 3").await;
            assert!(
                build_report(&test.store, None, None)
                    .await
                    .unwrap()
                    .is_intact()
            );
            let text = scene.fault_report().await;
            let cut = "the chain of taxpayer 1 was truncated: it ends at event 6, and checkpoint 2 has event 10";
            assert!(text.contains(cut), "{text}");
            let removed = "the chain of taxpayer 3 was removed: it had event 5 at checkpoint 1";
            assert!(text.contains(removed), "{text}");
            assert!(!scene.verify(Some(3)).await.is_intact());
        }
    }

    #[actix_rt::test]
    async fn checkpoints_that_were_tampered_with_are_named() {
        for test in stores().await {
            let scene = create_scene(&test.store).await;
            let text = std::fs::read_to_string(scene.path()).unwrap();
            let second = text.lines().nth(1).unwrap();
            let first = text.lines().next().unwrap();
            let intact_report = scene.verify(None).await.to_string();
            let at_least: LastCheckpointLine =
                intact_report.lines().last().unwrap().parse().unwrap();
            assert_eq!(at_least.number, 2, "{intact_report}");
            for (tampered, expected) in [
                (
                    String::new(),
                    "it ends at checkpoint 0, and checkpoint 2 was in it",
                ),
                (
                    format!("{first}\n"),
                    "it ends at checkpoint 1, and checkpoint 2 was in it",
                ),
                (text.replacen("2:5:", "2:4:", 1), "line 1 of "),
                (
                    format!("{second}\n"),
                    "it does not follow the line before it",
                ),
                (
                    format!("{first}\n{first}\n"),
                    "it does not follow the line before it",
                ),
                (text.replace('\n', "\r\n"), "line 1 of "),
            ] {
                std::fs::write(scene.path(), tampered).unwrap();
                let report = scene
                    .verify_with(None, Some(at_least.clone()), Timestamp::MIN)
                    .await
                    .to_string();
                assert!(
                    report.contains("the checkpoints cannot be relied on: ")
                        && report.contains(expected),
                    "{report}"
                );
                assert!(!report.contains("whole"), "{report}");
            }
        }
    }

    /// Without an expected checkpoint (`at_least`), a cut file is recognised by the checkpoints that it lacks.
    #[actix_rt::test]
    async fn a_file_that_was_emptied_or_cut_or_is_out_of_date_is_not_intact() {
        for test in stores().await {
            let scene = create_scene(&test.store).await;
            let text = std::fs::read_to_string(scene.path()).unwrap();
            let first = text.lines().next().unwrap();
            let hash = hex::encode([0; 32]);
            let other = Some(LastCheckpointLine { number: 2, hash });
            let never = Timestamp::MIN;
            let now = SystemClock.now();
            for (file, at_least, covered_until, expected) in [
                (text.clone(), None, now, ""),
                (String::new(), None, never, "the file holds no checkpoint"),
                (
                    "einvoice-checkpoint/1 1 20".to_owned(),
                    None,
                    never,
                    "its last line has no end",
                ),
                (
                    text.trim_end().to_owned(),
                    None,
                    never,
                    "its last line has no end",
                ),
                (
                    format!("{text}einvoice"),
                    None,
                    now,
                    "its last line has no end",
                ),
                (format!("{first}\n"), None, never, ""),
                (
                    format!("{first}\n"),
                    None,
                    now,
                    "event 6 of taxpayer 1, of 1970-01-01T00:00:00Z, is in no",
                ),
                (
                    text.clone(),
                    other,
                    now,
                    "its checkpoint 2 is another one than it was",
                ),
            ] {
                std::fs::write(scene.path(), &file).unwrap();
                let report = scene.verify_with(None, at_least, covered_until).await;
                assert_eq!(report.is_intact(), expected.is_empty(), "{file}: {report}");
                assert!(report.to_string().contains(expected), "{file}: {report}");
            }
        }
    }

    /// A process that was stopped may have signed an older head after another process had signed a newer one.
    #[actix_rt::test]
    async fn an_older_head_after_a_newer_one_uncovers_no_event() {
        for test in stores().await {
            let scene = create_scene(&test.store).await;
            let id = TaxpayerId(1);
            let mut fifth = events::owned_by_after(&test.store, id, 4, 1).await.unwrap();
            let fifth = fifth.remove(0);
            let older = TaxpayerLogHead {
                taxpayer_id: id,
                head: LogHead {
                    sequence: fifth.sequence,
                    hash: fifth.hash,
                },
            };
            let mut tail = scene.checkpointer.file.lock().await.last_line().clone();
            let line = tail.sign_next_checkpoint(SystemClock.now(), &[older], &key());
            let text = std::fs::read_to_string(scene.path()).unwrap();
            std::fs::write(scene.path(), format!("{text}{line}\n")).unwrap();
            let report = scene.verify_with(None, None, SystemClock.now()).await;
            assert!(report.is_intact(), "{report}");
        }
    }

    #[test]
    fn events_of_the_last_two_periods_may_wait_for_their_checkpoint() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(
            coverage_deadline(600, now),
            Timestamp::from_second(1_799_998_800).unwrap()
        );
        assert_eq!(coverage_deadline(0, now), Timestamp::MIN, "on demand only");
    }
}
