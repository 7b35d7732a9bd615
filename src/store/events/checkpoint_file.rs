//! The file of checkpoints: signed lists of the last events of taxpayers' logs. Several processes can share the file,
//! because a writer locks it before it appends a line. If a crash leaves an incomplete last line, the next writer
//! removes it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::domain::events::checkpoint::{
    Checkpoint, CheckpointFault, CheckpointKey, CheckpointPublicKey, LastCheckpointLine,
    TaxpayerLogHead,
};
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, thiserror::Error)]
pub enum CheckpointFileError {
    #[error("the file {} cannot be used", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("line {line} of {}: {fault}", .path.display())]
    Line {
        path: PathBuf,
        line: u64,
        fault: CheckpointFault,
    },
    #[error("{} became shorter: checkpoints that this process knows are not in it any more", .path.display())]
    Shortened { path: PathBuf },
}

/// Reads the checkpoints of a file one by one and verifies each.
pub struct CheckpointReader {
    path: PathBuf,
    file: BufReader<File>,
    key: CheckpointPublicKey,
    tail: LastCheckpointLine,
    /// The offset after the last complete line, in bytes.
    end: u64,
}

/// A checkpoint file to which this process can append.
pub struct CheckpointFile {
    path: PathBuf,
    key: CheckpointKey,
    tail: LastCheckpointLine,
    end: u64,
    /// The newest head of each taxpayer's log in the file.
    heads: HashMap<TaxpayerId, LogHead>,
}

impl CheckpointReader {
    pub fn open(path: &Path, key: CheckpointPublicKey) -> Result<Self, CheckpointFileError> {
        let file = File::open(path).map_err(|source| unusable_file_error(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            key,
            tail: LastCheckpointLine::default(),
            end: 0,
        })
    }

    /// Reads and verifies the next checkpoint; `None` at the end of the file. Ignores an incomplete last line, which a
    /// crash may leave.
    pub fn read(&mut self) -> Result<Option<Checkpoint>, CheckpointFileError> {
        let mut line = String::new();
        let read = self
            .file
            .read_line(&mut line)
            .map_err(|source| unusable_file_error(&self.path, source))?;
        let Some(text) = line.strip_suffix('\n') else {
            return Ok(None);
        };
        let accepted = self
            .tail
            .accept_next_checkpoint(text, &self.key)
            .map_err(|fault| CheckpointFileError::Line {
                path: self.path.clone(),
                line: self.tail.number + 1,
                fault,
            })?;
        self.end += read as u64;
        Ok(Some(accepted))
    }

    /// True if the file ends in an incomplete line. Waits while another process appends to the file.
    pub fn ends_in_incomplete_line(&mut self) -> Result<bool, CheckpointFileError> {
        let Self {
            path, file, end, ..
        } = self;
        let mut last = String::new();
        file.get_ref()
            .lock_shared()
            .map_err(|source| unusable_file_error(path, source))?;
        let read = file
            .seek(SeekFrom::Start(*end))
            .and_then(|_| file.read_line(&mut last));
        file.get_ref()
            .unlock()
            .and(read.map(drop))
            .map_err(|source| unusable_file_error(path, source))?;
        Ok(!last.is_empty() && !last.ends_with('\n'))
    }

    /// Returns the number and the hash of the last checkpoint that was read.
    pub fn last_line(&self) -> &LastCheckpointLine {
        &self.tail
    }
}

impl CheckpointFile {
    /// Creates the value without opening the file. The file is opened, or created, when it is first used.
    pub fn new(path: PathBuf, key: CheckpointKey) -> Self {
        Self {
            path,
            key,
            tail: LastCheckpointLine::default(),
            end: 0,
            heads: HashMap::new(),
        }
    }

    pub fn last_line(&self) -> &LastCheckpointLine {
        &self.tail
    }

    pub fn public_key(&self) -> CheckpointPublicKey {
        self.key.public_key()
    }

    /// Returns the newest head of this taxpayer's log in the file; `None` if the file has none.
    pub fn head(&self, taxpayer: TaxpayerId) -> Option<&LogHead> {
        self.heads.get(&taxpayer)
    }

    /// Reads the checkpoints that other processes have appended since the last call.
    pub fn read_new_checkpoints(&mut self) -> Result<(), CheckpointFileError> {
        self.lock_file().map(drop)
    }

    /// Signs a checkpoint of these heads and appends it. Leaves out a head if the file already has the same or a newer
    /// head of that log, because another process may have signed it since these heads were read. The line is on disk
    /// when this returns.
    pub fn append(
        &mut self,
        at: Timestamp,
        mut heads: Vec<TaxpayerLogHead>,
    ) -> Result<(), CheckpointFileError> {
        let mut file = self.lock_file()?;
        heads.retain(|one| {
            let known = self.head(one.taxpayer_id);
            known.is_none_or(|known| known.sequence < one.head.sequence)
        });
        if heads.is_empty() {
            return Ok(());
        }
        let mut tail = self.tail.clone();
        let line = tail.sign_next_checkpoint(at, &heads, &self.key) + "\n";
        let written = file
            .write_all(line.as_bytes())
            .and_then(|()| file.sync_data());
        written.map_err(|source| unusable_file_error(&self.path, source))?;
        self.tail = tail;
        self.end += line.len() as u64;
        self.heads
            .extend(heads.into_iter().map(|one| (one.taxpayer_id, one.head)));
        Ok(())
    }

    /// Opens and locks the file, reads all new checkpoints, and removes an incomplete last line. Fails if the file has
    /// become shorter since the last call: a checkpoint that is written at the old end would follow a gap of zeros, and
    /// nobody could read the file.
    fn lock_file(&mut self) -> Result<File, CheckpointFileError> {
        let path = self.path.clone();
        let failed = |source| unusable_file_error(&path, source);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        file.lock().map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < self.end {
            return Err(CheckpointFileError::Shortened { path });
        }
        file.seek(SeekFrom::Start(self.end)).map_err(failed)?;
        let mut reader = CheckpointReader {
            path: path.clone(),
            file: BufReader::new(file),
            key: self.key.public_key(),
            tail: self.tail.clone(),
            end: self.end,
        };
        while let Some(checkpoint) = reader.read()? {
            self.heads.extend(
                checkpoint
                    .heads
                    .into_iter()
                    .map(|one| (one.taxpayer_id, one.head)),
            );
            self.tail = reader.tail.clone();
            self.end = reader.end;
        }
        let mut file = reader.file.into_inner();
        if file.metadata().map_err(failed)?.len() > self.end {
            tracing::warn!(file = %path.display(), "removed a checkpoint that was cut short");
            file.set_len(self.end).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(self.end)).map_err(failed)?;
        Ok(file)
    }
}

fn unusable_file_error(path: &Path, source: io::Error) -> CheckpointFileError {
    CheckpointFileError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn key() -> CheckpointKey {
        CheckpointKey::parse(&STANDARD.encode([1; 32])).unwrap()
    }

    fn head(taxpayer: i64, sequence: i64) -> TaxpayerLogHead {
        let head = LogHead {
            sequence,
            hash: hex::encode([7; 32]),
        };
        TaxpayerLogHead {
            taxpayer_id: TaxpayerId(taxpayer),
            head,
        }
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let mut reader = CheckpointReader::open(path, key().public_key()).unwrap();
        std::iter::from_fn(|| reader.read().unwrap())
            .map(|one| one.number)
            .collect()
    }

    #[test]
    fn processes_that_share_a_file_append_to_one_chain() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoints");
        let [mut one, mut other] = [(); 2].map(|()| CheckpointFile::new(path.clone(), key()));
        one.append(Timestamp::UNIX_EPOCH, vec![head(1, 3)]).unwrap();
        other
            .append(Timestamp::UNIX_EPOCH, vec![head(2, 5)])
            .unwrap();
        one.append(Timestamp::UNIX_EPOCH, vec![head(1, 4)]).unwrap();
        assert_eq!(numbers(&path), [1, 2, 3]);
        other.read_new_checkpoints().unwrap();
        let known =
            |file: &CheckpointFile| [1, 2].map(|id| file.head(TaxpayerId(id)).unwrap().sequence);
        assert_eq!((known(&one), known(&other)), ([4, 5], [4, 5]));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_head_is_not_signed_after_a_newer_one() {
        for (late, numbers_then, known_then) in [
            (vec![head(1, 3)], vec![1], [Some(5), None]),
            (vec![head(1, 5)], vec![1], [Some(5), None]),
            (vec![head(1, 6)], vec![1, 2], [Some(6), None]),
            (vec![head(1, 3), head(2, 1)], vec![1, 2], [Some(5), Some(1)]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("checkpoints");
            let [mut one, mut other, mut third] =
                [(); 3].map(|()| CheckpointFile::new(path.clone(), key()));
            one.append(Timestamp::UNIX_EPOCH, vec![head(1, 5)]).unwrap();
            other.append(Timestamp::UNIX_EPOCH, late.clone()).unwrap();
            assert_eq!(numbers(&path), numbers_then, "{late:?}");
            third.read_new_checkpoints().unwrap();
            for file in [&other, &third] {
                let known = [1, 2].map(|id| file.head(TaxpayerId(id)).map(|head| head.sequence));
                assert_eq!(known, known_then, "{late:?}");
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_gets_no_further_checkpoint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoints");
        let mut file = CheckpointFile::new(path.clone(), key());
        for sequence in 1..=2 {
            let heads = vec![head(1, sequence)];
            file.append(Timestamp::UNIX_EPOCH, heads).unwrap();
        }
        let whole = std::fs::read_to_string(&path).unwrap();
        let first = whole.split_inclusive('\n').next().unwrap();
        let added = format!("{whole}einvoice-checkpoint/1 3 19");
        for (text, numbers_then) in [
            ("", None),
            (first, None),
            (&whole[..whole.len() - 1], None),
            (whole.as_str(), Some(vec![1, 2, 3])),
            (added.as_str(), Some(vec![1, 2, 3])),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut file = CheckpointFile {
                tail: file.tail.clone(),
                end: file.end,
                ..CheckpointFile::new(path.clone(), key())
            };
            let appended = file.append(Timestamp::UNIX_EPOCH, vec![head(1, 3)]);
            let left = std::fs::read_to_string(&path).unwrap();
            match numbers_then {
                Some(expected) => assert_eq!(numbers(&path), expected, "{text:?}"),
                None => assert_eq!(left, text),
            }
            let is_shorter = matches!(appended, Err(CheckpointFileError::Shortened { .. }));
            assert_eq!(is_shorter, text.len() < whole.len(), "{appended:?}");
        }
    }

    #[test]
    fn a_line_that_was_cut_short_is_replaced_and_one_that_was_changed_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoints");
        let mut file = CheckpointFile::new(path.clone(), key());
        file.append(Timestamp::UNIX_EPOCH, vec![head(1, 3)])
            .unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}einvoice-checkpoint/1 2 19")).unwrap();
        assert_eq!(numbers(&path), [1]);
        let mut file = CheckpointFile::new(path.clone(), key());
        file.append(Timestamp::UNIX_EPOCH, vec![head(1, 4)])
            .unwrap();
        assert_eq!(numbers(&path), [1, 2]);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.replacen("1:3:", "1:2:", 1)).unwrap();
        let mut file = CheckpointFile::new(path.clone(), key());
        let error = file
            .append(Timestamp::UNIX_EPOCH, vec![head(1, 5)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 1 of ") && error.contains("not of this key"),
            "{error}"
        );
    }
}
