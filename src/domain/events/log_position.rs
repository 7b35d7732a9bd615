//! A position in the event log of a taxpayer: the sequence of an event, or a time.

use jiff::Timestamp;

/// The description of a log position in the message of a fault, after "The … field must be".
pub(crate) const LOG_POSITION_FORM: &str = "an RFC 3339 time or the sequence of an event";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogPosition {
    Sequence(i64),
    Moment(Timestamp),
}

impl LogPosition {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Sequence);
        }
        text.parse().ok().map(Self::Moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_moment_is_a_place_and_nothing_else_is() {
        assert_eq!(LogPosition::parse(" 42 "), Some(LogPosition::Sequence(42)));
        assert_eq!(LogPosition::parse("0"), Some(LogPosition::Sequence(0)));
        for moment in [
            "1970-01-01T00:00:00Z",
            "1970-01-01T01:00:00+01:00",
            "1970-01-01T00:00:00.000000Z",
        ] {
            assert_eq!(
                LogPosition::parse(moment),
                Some(LogPosition::Moment(Timestamp::UNIX_EPOCH)),
                "{moment}"
            );
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
            assert_eq!(LogPosition::parse(odd), None, "{odd:?}");
        }
    }
}
