//! The command `verify`: checks one or all event chains, and compares them with signed checkpoints.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;

use crate::app::checkpoint::signing_key;
use crate::app::database::open_existing;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::events::checkpoint::{ChainHead, Checkpoint, CheckpointChain, CheckpointPublicKey};
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::events;
use crate::store::events::checkpoint_file::{CheckpointFileError, CheckpointReader};

/// The number of events read at a time.
const PAGE: u64 = 1_000;

/// The checkpoint file to compare with, and the key that verifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSource {
    pub file: PathBuf,
    /// The public key of the checkpoints. `None` means the public half of the key in `checkpoints.key_file`.
    pub public_key: Option<String>,
}

/// How a chain differs from checkpoint `number`. The checkpoint signs the event `sequence`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChainDifference {
    /// The chain has an event with this sequence, but its hash differs from the one in the checkpoint.
    Rewritten { sequence: i64, number: u64 },
    /// The chain ends at event `end`, before the event that the checkpoint signs.
    Truncated { sequence: i64, number: u64, end: i64 },
    /// The event that the checkpoint signs is missing, but later events exist.
    Missing { sequence: i64, number: u64 },
    /// The chain has no event any more.
    Removed { sequence: i64, number: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerificationReport {
    taxpayers: usize,
    events: i64,
    /// The broken chains: the taxpayer, and the sequence of the first event whose hash does not match the event before.
    breaks: Vec<(TaxpayerId, i64)>,
    /// The first difference between a chain and its checkpoints, for each taxpayer whose chain differs.
    differences: BTreeMap<TaxpayerId, ChainDifference>,
    /// The number and hash of the last checkpoint read; `None` if no checkpoints were compared.
    checkpoints: Option<CheckpointChain>,
    /// Why reading the checkpoint file stopped before its end; `None` if the file was read completely.
    fault: Option<String>,
}

impl VerificationReport {
    pub fn is_intact(&self) -> bool {
        self.breaks.is_empty() && self.differences.is_empty() && self.fault.is_none()
    }
}

impl fmt::Display for ChainDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rewritten { sequence, number } => {
                write!(f, "was rewritten: event {sequence} is not the one of checkpoint {number}")
            }
            Self::Truncated { sequence, number, end } => write!(
                f,
                "was truncated: it ends at event {end}, and checkpoint {number} has event {sequence}"
            ),
            Self::Missing { sequence, number } => {
                write!(f, "was rewritten: event {sequence} of checkpoint {number} is gone")
            }
            Self::Removed { sequence, number } => {
                write!(f, "was removed: it had event {sequence} at checkpoint {number}")
            }
        }
    }
}

impl fmt::Display for VerificationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events of {} taxpayers", self.events, self.taxpayers)?;
        for (taxpayer, sequence) in &self.breaks {
            write!(f, "; the chain of taxpayer {taxpayer} breaks at event {sequence}")?;
        }
        for (taxpayer, difference) in &self.differences {
            write!(f, "; the chain of taxpayer {taxpayer} {difference}")?;
        }
        if let Some(fault) = &self.fault {
            write!(f, "; the checkpoints cannot be relied on: {fault}")?;
        }
        if self.is_intact() {
            f.write_str(": every chain is whole")?;
        }
        match &self.checkpoints {
            Some(CheckpointChain { number, hash }) => {
                write!(f, ", compared with {number} checkpoints, the last {hash}")
            }
            None => Ok(()),
        }
    }
}

/// Checks that no event was changed, lost or inserted, and that each chain contains its checkpoints.
pub async fn verify(
    settings: Settings,
    taxpayer: Option<i64>,
    source: Option<CheckpointSource>,
) -> Result<VerificationReport, StartError> {
    let reader = source.map(|source| reader(&settings, source)).transpose()?;
    let store = open_existing(&settings).await?;
    let report = report(&store, taxpayer.map(TaxpayerId), reader).await;
    store.close().await;
    report
}

fn reader(settings: &Settings, source: CheckpointSource) -> Result<CheckpointReader, StartError> {
    let key = match (source.public_key, &settings.checkpoints.key_file) {
        (Some(text), _) => CheckpointPublicKey::parse(&text).map_err(StartError::PublicKey)?,
        (None, Some(path)) => signing_key(path)?.public(),
        (None, None) => return Err(StartError::NoPublicKey),
    };
    Ok(CheckpointReader::open(&source.file, key)?)
}

async fn report(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    reader: Option<CheckpointReader>,
) -> Result<VerificationReport, StartError> {
    let ids = match taxpayer {
        // A deleted taxpayer may still have checkpoints, so an unknown id is an error only without checkpoints.
        Some(id) => match taxpayers::with_id(store.reader(), id).await? {
            Some(taxpayer) => vec![taxpayer.id],
            None if reader.is_some() => Vec::new(),
            None => return Err(StartError::NoTaxpayer(id.0)),
        },
        None => taxpayers::all_ids(store).await?,
    };
    let mut report = VerificationReport { taxpayers: ids.len(), ..VerificationReport::default() };
    for id in ids {
        walk(store, id, &mut report).await?;
    }
    if let Some(reader) = reader {
        compare_all(store, taxpayer, reader, &mut report).await?;
    }
    Ok(report)
}

async fn walk(
    store: &Store,
    taxpayer: TaxpayerId,
    report: &mut VerificationReport,
) -> Result<(), StoreError> {
    let mut head = LogHead::default();
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

/// Compares each checkpoint with the events that it signs.
async fn compare_all(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    mut reader: CheckpointReader,
    report: &mut VerificationReport,
) -> Result<(), StartError> {
    loop {
        match reader.read() {
            Ok(Some(checkpoint)) => compare(store, taxpayer, checkpoint, report).await?,
            Ok(None) => break,
            Err(fault @ CheckpointFileError::Line { .. }) => {
                report.fault = Some(fault.to_string());
                break;
            }
            Err(other) => return Err(other.into()),
        }
    }
    report.checkpoints = Some(reader.tail().clone());
    Ok(())
}

async fn compare(
    store: &Store,
    taxpayer: Option<TaxpayerId>,
    checkpoint: Checkpoint,
    report: &mut VerificationReport,
) -> Result<(), StoreError> {
    let Checkpoint { number, mut heads, .. } = checkpoint;
    heads.retain(|one| taxpayer.is_none_or(|only| only == one.taxpayer_id));
    let found = events::hashes_at(store, &heads).await?;
    for one in heads.iter().filter(|one| found.get(&one.taxpayer_id) != Some(&one.head)) {
        if let Entry::Vacant(first) = report.differences.entry(one.taxpayer_id) {
            first.insert(difference(store, one, number).await?);
        }
    }
    Ok(())
}

async fn difference(store: &Store, signed: &ChainHead, number: u64) -> Result<ChainDifference, StoreError> {
    let sequence = signed.head.sequence;
    let end = events::head(store.reader(), signed.taxpayer_id).await?.sequence;
    let is_there = !events::hashes_at(store, std::slice::from_ref(signed)).await?.is_empty();
    Ok(match end {
        0 => ChainDifference::Removed { sequence, number },
        end if end < sequence => ChainDifference::Truncated { sequence, number, end },
        _ if is_there => ChainDifference::Rewritten { sequence, number },
        _ => ChainDifference::Missing { sequence, number },
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use jiff::Timestamp;
    use sea_orm::ConnectionTrait;
    use serde_json::json;
    use tempfile::TempDir;
    use tokio::sync::Mutex;

    use super::*;
    use crate::actors::checkpoint::Checkpointer;
    use crate::domain::events::checkpoint::CheckpointKey;
    use crate::domain::events::event::{EventKind, EventStamp, NewEvent};
    use crate::domain::kernel::clock::{SystemClock, new_id};
    use crate::store::events::checkpoint_file::CheckpointFile;
    use crate::store::testing::stores;

    fn key() -> CheckpointKey {
        CheckpointKey::parse(&STANDARD.encode([1; 32])).unwrap()
    }

    async fn execute(store: &Store, sql: &str) {
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(sql).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn add_taxpayer(store: &Store, id: i64) {
        let names = [
            "name",
            "email",
            "email_key",
            "tin",
            "tin_normal",
            "service_id",
            "service_id_key",
            "business_id",
            "business_id_key",
            "address",
            "search_text",
        ];
        let (columns, values) = (names.join(", "), names.map(|_| format!("'{id}'")).join(", "));
        let sql = format!(
            "INSERT INTO taxpayers (id, integrator_id, subscription, verification, created_at, updated_at, {columns}) \
             VALUES ({id}, 1, 'active', 'pending', 0, 0, {values})"
        );
        execute(store, &sql).await;
    }

    async fn append(store: &Store, id: i64, count: usize) {
        let mut head = events::head(store.reader(), TaxpayerId(id)).await.unwrap();
        let seal = || EventStamp {
            id: new_id(),
            taxpayer_id: TaxpayerId(id),
            command_id: new_id(),
            now: Timestamp::UNIX_EPOCH,
        };
        let occurrence = || NewEvent {
            kind: EventKind::InvoiceCreated,
            irn: None,
            data: json!({ "unit_price": 500 }).to_string(),
        };
        let new: Vec<_> = (0..count).map(|_| head.append(occurrence(), seal())).collect();
        let tx = store.begin().await.unwrap();
        events::append(&tx, &new).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Changes an amount in all events and recomputes the hashes, as somebody with write access could do.
    async fn rewrite(store: &Store, id: i64) {
        let all = events::owned_by_after(store, TaxpayerId(id), 0, PAGE).await.unwrap();
        let mut head = LogHead::default();
        execute(store, &format!("DELETE FROM events WHERE taxpayer_id = {id}")).await;
        let seal = |event: &crate::domain::events::event::Event| EventStamp {
            id: event.id,
            taxpayer_id: event.taxpayer_id,
            command_id: event.command_id,
            now: event.timestamp,
        };
        let change = |event: &crate::domain::events::event::Event| {
            let data = json!({ "unit_price": 5 }).to_string();
            head.append(NewEvent { kind: event.kind, irn: event.irn.clone(), data }, seal(event))
        };
        let forged: Vec<_> = all.iter().map(change).collect();
        let tx = store.begin().await.unwrap();
        events::append(&tx, &forged).await.unwrap();
        tx.commit().await.unwrap();
    }

    struct Scene {
        directory: TempDir,
        checkpointer: Checkpointer,
    }

    impl Scene {
        fn new(store: &Store) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = CheckpointFile::new(directory.path().join("checkpoints"), key());
            let file = Arc::new(Mutex::new(file));
            let checkpointer = Checkpointer { store: store.clone(), clock: Arc::new(SystemClock), file };
            Self { directory, checkpointer }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("checkpoints")
        }

        async fn verified(&self, taxpayer: Option<i64>) -> VerificationReport {
            let reader = CheckpointReader::open(&self.path(), key().public()).unwrap();
            let taxpayer = taxpayer.map(TaxpayerId);
            report(&self.checkpointer.store, taxpayer, Some(reader)).await.unwrap()
        }

        async fn said(&self) -> String {
            let report = self.verified(None).await;
            assert!(!report.is_intact(), "{report}");
            report.to_string()
        }
    }

    /// Creates three taxpayers with events, and two checkpoints. Taxpayer 1 gets more events between the checkpoints.
    async fn checkpointed(store: &Store) -> Scene {
        for id in 1..=3 {
            add_taxpayer(store, id).await;
            append(store, id, 5).await;
        }
        let scene = Scene::new(store);
        assert_eq!(scene.checkpointer.run().await.unwrap().heads, 3);
        append(store, 1, 5).await;
        assert_eq!(scene.checkpointer.run().await.unwrap().heads, 1, "only what has grown");
        let idle = scene.checkpointer.run().await.unwrap();
        assert_eq!((idle.heads, idle.tail.number), (0, 2), "nothing to sign, no line");
        let report = scene.verified(None).await;
        assert!(report.is_intact(), "{report}");
        assert!(report.to_string().contains("compared with 2 checkpoints"), "{report}");
        scene
    }

    #[actix_rt::test]
    async fn a_chain_that_was_rewritten_with_its_hashes_is_named() {
        for test in stores().await {
            let scene = checkpointed(&test.store).await;
            rewrite(&test.store, 2).await;
            let alone = report(&test.store, None, None).await.unwrap();
            assert!(alone.is_intact(), "without checkpoints it passes: {alone}");
            let said = scene.said().await;
            assert!(
                said.contains(
                    "the chain of taxpayer 2 was rewritten: event 5 is not the one of checkpoint 1"
                ),
                "{said}"
            );
            assert!(!said.contains("taxpayer 1 ") && !said.contains("taxpayer 3 "), "{said}");
            assert!(scene.verified(Some(1)).await.is_intact());
            assert!(!scene.verified(Some(2)).await.is_intact());
            // The chain of taxpayer 2 has grown, but it was rewritten, so the checkpointer does not sign it.
            append(&test.store, 2, 1).await;
            let run = scene.checkpointer.run().await.unwrap();
            assert_eq!((run.heads, run.broken), (0, vec![TaxpayerId(2)]));
        }
    }

    #[actix_rt::test]
    async fn a_chain_that_was_cut_or_removed_is_named() {
        for test in stores().await {
            let scene = checkpointed(&test.store).await;
            execute(&test.store, "DELETE FROM events WHERE taxpayer_id = 1 AND sequence > 6").await;
            execute(&test.store, "DELETE FROM events WHERE taxpayer_id = 3").await;
            execute(&test.store, "DELETE FROM taxpayers WHERE id = 3").await;
            assert!(report(&test.store, None, None).await.unwrap().is_intact());
            let said = scene.said().await;
            let cut =
                "the chain of taxpayer 1 was truncated: it ends at event 6, and checkpoint 2 has event 10";
            assert!(said.contains(cut), "{said}");
            let removed = "the chain of taxpayer 3 was removed: it had event 5 at checkpoint 1";
            assert!(said.contains(removed), "{said}");
            assert!(!scene.verified(Some(3)).await.is_intact());
        }
    }

    #[actix_rt::test]
    async fn checkpoints_that_were_tampered_with_are_named() {
        for test in stores().await {
            let scene = checkpointed(&test.store).await;
            let text = std::fs::read_to_string(scene.path()).unwrap();
            let second = text.lines().nth(1).unwrap();
            for (tampered, said) in [
                (text.replacen("2:5:", "2:4:", 1), "line 1 of "),
                (format!("{second}\n"), "it does not follow the line before it"),
            ] {
                std::fs::write(scene.path(), tampered).unwrap();
                let found = scene.said().await;
                assert!(
                    found.contains("the checkpoints cannot be relied on: ") && found.contains(said),
                    "{found}"
                );
            }
        }
    }
}
