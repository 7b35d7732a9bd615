//! From where on the log is meant: from the event with a number, or from the first at or after a moment.

use jiff::Timestamp;

use crate::domain::kernel::ids::TaxpayerId;
use crate::http::state::State;
use crate::store::db::error::StoreError;
use crate::store::events;

/// What such a field must be, as the rest of a sentence.
pub(crate) const SINCE: &str = "must be an RFC 3339 time or the sequence of an event";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    Sequence(i64),
    Moment(Timestamp),
}

impl Since {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Sequence);
        }
        text.parse().ok().map(Self::Moment)
    }

    /// The number of the first event that is meant; beyond the log where there is none.
    pub(crate) async fn sequence(self, state: &State, taxpayer: TaxpayerId) -> Result<i64, StoreError> {
        match self {
            Self::Sequence(sequence) => Ok(sequence),
            Self::Moment(moment) => events::first_at_or_after(&state.store, taxpayer, moment).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_moment_is_a_place_and_nothing_else_is() {
        assert_eq!(Since::parse(" 42 "), Some(Since::Sequence(42)));
        assert_eq!(Since::parse("0"), Some(Since::Sequence(0)));
        for moment in ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00.000000Z"] {
            assert_eq!(Since::parse(moment), Some(Since::Moment(Timestamp::UNIX_EPOCH)), "{moment}");
        }
        for odd in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "0x1",
            "99999999999999999999",
            "yesterday",
            "2026-01-15",
            "2026-13-01T00:00:00Z",
            "2026-01-15T10:00:00",
            "99999-01-01T00:00:00Z",
            "\0",
            "１",
        ] {
            assert_eq!(Since::parse(odd), None, "{odd:?}");
        }
    }
}
