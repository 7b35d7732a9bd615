//! Checkpoints of the event logs of taxpayers. The events of a log are chained by hashes; the hash of the last event is
//! the head of the chain. A checkpoint lists heads and is signed with a key that is not in the database. An attacker
//! who rewrites a log in the database cannot sign a checkpoint that fits it.
//!
//! A checkpoint is a line of text, `einvoice-checkpoint/1 NUMBER TIME PREVIOUS HEADS SIGNATURE`. PREVIOUS is the
//! SHA-256 of the previous line, so that no line can be removed or inserted unnoticed. HEADS are
//! `TAXPAYER:SEQUENCE:HASH`, separated by commas. SIGNATURE is the Ed25519 signature, in base64, of everything
//! before it in the line.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::domain::events::event::LogHead;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;

const FORMAT_NAME: &str = "einvoice-checkpoint/1";
const KEY_BYTES: usize = 32;

/// The last event of a taxpayer's log, with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxpayerLogHead {
    pub taxpayer_id: TaxpayerId,
    pub head: LogHead,
}

/// A signed list of the heads of those logs that grew since the previous checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub number: u64,
    pub at: Timestamp,
    pub heads: Vec<TaxpayerLogHead>,
}

/// The number and the hash of the last line of a checkpoint file. The next line contains this hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastCheckpointLine {
    pub number: u64,
    pub hash: String,
}

/// The error for a text that is not `NUMBER:HASH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a checkpoint is named NUMBER:HASH, as `verify` prints it")]
pub struct InvalidCheckpointName;

/// Formats the number and the hash of a checkpoint as `NUMBER:HASH`.
impl fmt::Display for LastCheckpointLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

impl FromStr for LastCheckpointLine {
    type Err = InvalidCheckpointName;

    fn from_str(text: &str) -> Result<Self, InvalidCheckpointName> {
        let (number, hash) = text.trim().split_once(':').ok_or(InvalidCheckpointName)?;
        let number = number.parse().map_err(|_| InvalidCheckpointName)?;
        let bytes = hex::decode(hash).map_err(|_| InvalidCheckpointName)?;
        if bytes.len() != Sha256::output_size() || number == 0 {
            return Err(InvalidCheckpointName);
        }
        Ok(Self {
            number,
            hash: hash.to_ascii_lowercase(),
        })
    }
}

/// The private key that signs checkpoints.
pub struct CheckpointKey(Ed25519KeyPair);

/// The public key that verifies the signatures of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPublicKey(Vec<u8>);

/// The error for a text that is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key of checkpoints is {KEY_BYTES} bytes in base64")]
pub struct InvalidCheckpointKey;

/// The reason why a line of a checkpoint file is not the checkpoint that follows the line before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointFault {
    #[error("it is no checkpoint")]
    Form,
    #[error("its signature is not of this key")]
    Signature,
    #[error("it does not follow the line before it")]
    Order,
}

impl Default for LastCheckpointLine {
    fn default() -> Self {
        Self {
            number: 0,
            hash: hex::encode([0; 32]),
        }
    }
}

impl CheckpointKey {
    /// Parses a private key: 32 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, InvalidCheckpointKey> {
        let seed = STANDARD
            .decode(text.trim())
            .map_err(|_| InvalidCheckpointKey)?;
        Ed25519KeyPair::from_seed_unchecked(&seed)
            .map(Self)
            .map_err(|_| InvalidCheckpointKey)
    }

    pub fn public_key(&self) -> CheckpointPublicKey {
        CheckpointPublicKey(self.0.public_key().as_ref().to_vec())
    }
}

impl CheckpointPublicKey {
    /// Parses a public key: 32 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, InvalidCheckpointKey> {
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|_| InvalidCheckpointKey)?;
        if bytes.len() == KEY_BYTES {
            Ok(Self(bytes))
        } else {
            Err(InvalidCheckpointKey)
        }
    }
}

impl fmt::Display for CheckpointPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

impl LastCheckpointLine {
    /// Creates and signs the checkpoint that follows `self`, of these heads. Returns it as a line of text without a
    /// line break, and makes it the last line.
    pub fn sign_next_checkpoint(
        &mut self,
        at: Timestamp,
        heads: &[TaxpayerLogHead],
        key: &CheckpointKey,
    ) -> String {
        let number = self.number + 1;
        let heads: Vec<_> = heads.iter().map(ToString::to_string).collect();
        let signed = format!(
            "{FORMAT_NAME} {number} {} {} {}",
            precise_time(at),
            self.hash,
            heads.join(",")
        );
        let line = format!(
            "{signed} {}",
            STANDARD.encode(key.0.sign(signed.as_bytes()))
        );
        *self = Self {
            number,
            hash: digest(&line),
        };
        line
    }

    /// Checks that `line` is the checkpoint that follows `self`, the last line so far. If it is, it becomes the last
    /// line. Otherwise returns the fault and changes nothing.
    pub fn accept_next_checkpoint(
        &mut self,
        line: &str,
        key: &CheckpointPublicKey,
    ) -> Result<Checkpoint, CheckpointFault> {
        let (signed, signature) = line.rsplit_once(' ').ok_or(CheckpointFault::Form)?;
        let signature = STANDARD
            .decode(signature)
            .map_err(|_| CheckpointFault::Form)?;
        let verified =
            UnparsedPublicKey::new(&ED25519, &key.0).verify(signed.as_bytes(), &signature);
        verified.map_err(|_| CheckpointFault::Signature)?;
        let parts: Vec<_> = signed.split(' ').collect();
        let [FORMAT_NAME, number, at, previous, heads] = parts[..] else {
            return Err(CheckpointFault::Form);
        };
        let number = number.parse().map_err(|_| CheckpointFault::Form)?;
        let at = at.parse().map_err(|_| CheckpointFault::Form)?;
        let heads = heads
            .split(',')
            .map(parse_head)
            .collect::<Option<_>>()
            .ok_or(CheckpointFault::Form)?;
        if number != self.number + 1 || previous != self.hash {
            return Err(CheckpointFault::Order);
        }
        *self = Self {
            number,
            hash: digest(line),
        };
        Ok(Checkpoint { number, at, heads })
    }
}

impl fmt::Display for TaxpayerLogHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}",
            self.taxpayer_id, self.head.sequence, self.head.hash
        )
    }
}

fn parse_head(text: &str) -> Option<TaxpayerLogHead> {
    let (taxpayer, rest) = text.split_once(':')?;
    let (sequence, hash) = rest.split_once(':')?;
    let head = LogHead {
        sequence: sequence.parse().ok()?,
        hash: hash.to_owned(),
    };
    Some(TaxpayerLogHead {
        taxpayer_id: TaxpayerId(taxpayer.parse().ok()?),
        head,
    })
}

fn digest(line: &str) -> String {
    hex::encode(Sha256::digest(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> CheckpointKey {
        CheckpointKey::parse(&STANDARD.encode([byte; KEY_BYTES])).unwrap()
    }

    fn heads(sequence: i64) -> Vec<TaxpayerLogHead> {
        let head = |taxpayer| TaxpayerLogHead {
            taxpayer_id: TaxpayerId(taxpayer),
            head: LogHead {
                sequence,
                hash: hex::encode([7; 32]),
            },
        };
        vec![head(1), head(2)]
    }

    fn lines(count: i64) -> Vec<String> {
        let mut tail = LastCheckpointLine::default();
        (1..=count)
            .map(|n| tail.sign_next_checkpoint(Timestamp::UNIX_EPOCH, &heads(n), &key(1)))
            .collect()
    }

    fn accept_lines(
        lines: &[String],
        key: &CheckpointKey,
    ) -> Result<Vec<Checkpoint>, CheckpointFault> {
        let mut tail = LastCheckpointLine::default();
        lines
            .iter()
            .map(|line| tail.accept_next_checkpoint(line, &key.public_key()))
            .collect()
    }

    #[test]
    fn a_checkpoint_is_named_by_its_number_and_its_hash() {
        let hash = hex::encode([7; 32]);
        let named: LastCheckpointLine = format!(" 12:{hash}\n").parse().unwrap();
        assert_eq!(
            named,
            LastCheckpointLine {
                number: 12,
                hash: hash.clone()
            }
        );
        assert_eq!(named.to_string().parse(), Ok(named));
        for odd in [
            "",
            "12",
            "12:",
            ":12",
            "0:{hash}",
            "x:{hash}",
            "12:{hash}00",
            "12:zz",
        ] {
            let odd = odd.replace("{hash}", &hash);
            assert_eq!(
                odd.parse::<LastCheckpointLine>(),
                Err(InvalidCheckpointName),
                "{odd}"
            );
        }
    }

    #[test]
    fn a_signed_checkpoint_is_read_again() {
        let read = accept_lines(&lines(3), &key(1)).unwrap();
        assert_eq!(
            read.iter().map(|one| one.number).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert_eq!(
            (read[1].at, &read[1].heads),
            (Timestamp::UNIX_EPOCH, &heads(2))
        );
        let public = key(1).public_key();
        assert_eq!(CheckpointPublicKey::parse(&public.to_string()), Ok(public));
    }

    #[test]
    fn a_line_that_was_changed_left_out_moved_or_signed_by_another_is_found() {
        let all = lines(3);
        let fault = |lines: &[String], key| accept_lines(lines, &key).unwrap_err();
        assert_eq!(fault(&all, key(2)), CheckpointFault::Signature);
        let changed = vec![
            all[0].clone(),
            all[1].replacen("1:2:", "1:1:", 1),
            all[2].clone(),
        ];
        assert_eq!(fault(&changed, key(1)), CheckpointFault::Signature);
        assert_eq!(fault(&all[1..], key(1)), CheckpointFault::Order);
        let left_out = [all[0].clone(), all[2].clone()];
        assert_eq!(fault(&left_out, key(1)), CheckpointFault::Order);
        let twice = [all[0].clone(), all[0].clone()];
        assert_eq!(fault(&twice, key(1)), CheckpointFault::Order);
        for odd in ["", "x", "a b", &format!("{FORMAT_NAME} 1 {}", all[0])] {
            let found = LastCheckpointLine::default()
                .accept_next_checkpoint(odd, &key(1).public_key())
                .unwrap_err();
            assert_ne!(found, CheckpointFault::Order, "{odd}");
        }
    }

    #[test]
    fn a_key_is_32_bytes() {
        assert!(CheckpointKey::parse("c2hvcnQ=").is_err() && CheckpointKey::parse("").is_err());
        assert!(CheckpointPublicKey::parse("c2hvcnQ=").is_err());
    }
}
