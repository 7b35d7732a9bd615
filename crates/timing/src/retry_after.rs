//! The Retry-After header (RFC 9110, section 10.2.3) of responses. A response can ask for any wait, so the code that
//! waits must limit it.

use std::time::Duration;

use jiff::Timestamp;

/// The wait that a response requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    Wait(Duration),
    /// Wait until this time. The response had no Date header with which the time could be compared.
    Until(Timestamp),
}

impl RetryAfter {
    /// Parses Retry-After: a number of seconds, or a date. The wait until a date is counted from the response's Date
    /// header, if there is one, so that a wrong clock here does not matter.
    pub fn parse(text: &str, date: Option<&str>) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit()) {
            // A number that does not fit into u64 means the longest possible wait.
            return Some(Self::Wait(Duration::from_secs(
                text.parse().unwrap_or(u64::MAX),
            )));
        }
        let then = httpdate::parse_http_date(text).ok()?;
        match date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()) {
            Some(written) => Some(Self::Wait(
                then.duration_since(written).unwrap_or(Duration::ZERO),
            )),
            None => Timestamp::try_from(then).ok().map(Self::Until),
        }
    }

    /// Returns the time to wait. `now` is the present time of our own clock.
    pub fn wait(self, now: Timestamp) -> Duration {
        match self {
            Self::Wait(wait) => wait,
            Self::Until(then) => {
                Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
            }
        }
    }

    /// Returns the value of the header for a wait: whole seconds, rounded up, at least 1.
    pub fn seconds(wait: Duration) -> u64 {
        wait.as_secs()
            .saturating_add(u64::from(wait.subsec_nanos() > 0))
            .max(1)
    }
}

/// Parses the time of a Date header.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Timestamp::try_from(date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn seconds(asked: &str, date: Option<&str>) -> Option<u64> {
        // Our clock is one minute ahead of the receiver's clock.
        let ours = "1994-11-06T08:50:37Z".parse().unwrap();
        RetryAfter::parse(asked, date).map(|asked| asked.wait(ours).as_secs())
    }

    #[test]
    fn any_number_of_seconds_is_a_wait() {
        for (asked, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("007", Some(7)),
            ("86400", Some(86_400)),
            ("31536000", Some(31_536_000)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("1e3", None),
            ("0x10", None),
            ("5 s", None),
            ("soon", None),
            ("", None),
            ("ä", None),
            ("٣", None),
        ] {
            assert_eq!(seconds(asked, None), expected, "{asked}");
        }
    }

    #[test]
    fn a_date_is_a_wait_from_the_date_of_the_response() {
        for (asked, expected) in [
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(86_400)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(252_618_189_022)),
            ("Sun, 31 Feb 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("1994-11-06T08:50:37Z", None),
            ("tomorrow", None),
        ] {
            assert_eq!(seconds(asked, Some(NOW)), expected, "{asked}");
        }
    }

    #[test]
    fn without_a_date_header_a_date_is_compared_with_our_clock() {
        for date in [None, Some("now")] {
            assert_eq!(seconds("Sun, 06 Nov 1994 08:52:07 GMT", date), Some(90));
            assert_eq!(
                seconds("Sun, 06 Nov 1994 08:49:37 GMT", date),
                Some(0),
                "it is over"
            );
            assert_eq!(seconds("tomorrow", date), None);
        }
    }

    #[test]
    fn a_wait_is_written_as_whole_seconds_and_at_least_one() {
        let written = [0, 1, 1_000, 1_001, 90_000]
            .map(|millis| RetryAfter::seconds(Duration::from_millis(millis)));
        assert_eq!(written, [1, 1, 1, 2, 90]);
        assert_eq!(RetryAfter::seconds(Duration::MAX), u64::MAX);
    }
}
