//! The filters of the request log.

use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::query::Query;
use crate::store::operations::request_log::RequestFilter;

/// Reads all filters except the filter by taxpayer, which only the list of an integrator has.
pub(crate) fn read_filter(query: &Query) -> Result<RequestFilter, Faults> {
    match (read_status_range(query), query.utc_moment("since")) {
        (Ok(status), Ok(since)) => Ok(RequestFilter {
            status,
            path: query.trimmed_text("path"),
            route: query.trimmed_text("route"),
            method: None,
            error_code: query
                .trimmed_text("error_code")
                .map(|code| code.to_ascii_uppercase()),
            request_id: query.trimmed_text("request_id"),
            since,
            taxpayer: None,
            invoice: None,
        }),
        (status, since) => Err([status.err(), since.err()].into_iter().flatten().collect()),
    }
}

/// Reads a status such as 422, or a class of statuses such as 4xx. Returns the lowest and the highest status that
/// match.
fn read_status_range(query: &Query) -> Result<Option<(u16, u16)>, Fault> {
    let Some(text) = query.trimmed_text("status") else {
        return Ok(None);
    };
    let lower_case = text.to_ascii_lowercase();
    let class_range = lower_case
        .strip_suffix("xx")
        .map(|digit| (format!("{digit}00"), 99));
    let (lowest, width) = class_range.unwrap_or((text, 0));
    let lowest = lowest.parse().ok();
    let lowest = lowest.filter(|lowest| (100..=599).contains(lowest));
    lowest
        .map(|lowest: u16| Some((lowest, lowest + width)))
        .ok_or_else(|| {
            let rule = FieldRule::must_be("status", "a status such as 422, or a class such as 4xx");
            Fault::field("status", rule)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_number_or_a_class() {
        let read = |text: &str| {
            let filter = read_filter(&Query::from_text(&format!("status={text}")));
            filter.map(|filter| filter.status).ok()
        };
        assert_eq!(read("422"), Some(Some((422, 422))));
        assert_eq!(read("4xx"), Some(Some((400, 499))));
        assert_eq!(read("5XX"), Some(Some((500, 599))));
        assert_eq!(read(""), Some(None));
        for odd in ["99", "600", "xx", "4x", "6xx", "-1", "ok", "4xxxx", "65536"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
