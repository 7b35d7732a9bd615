//! The query for an account's activity: the kind of actor, the position to start after, and the number of entries.

use crate::domain::kernel::audit::ActorKind;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::query::Query;
use crate::store::operations::activity::ActivityFilter;

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 100;

/// Reads the filter, and the maximum number of entries on the page.
pub(crate) fn read_query(query: &Query) -> Result<(ActivityFilter, usize), Faults> {
    let actor = query.word("actor", ActorKind::parse, ActorKind::allowed_words);
    let limit = query.whole_number("limit", 1);
    let after = query
        .trimmed_text("cursor")
        .map(|text| text.parse())
        .transpose();
    let after =
        after.map_err(|()| Fault::field("cursor", FieldRule::must_be("cursor", "a cursor")));
    match (actor, after, limit) {
        (Ok(actor), Ok(after), Ok(limit)) => {
            let limit = limit.map_or(LIMIT_DEFAULT, |limit| {
                usize::try_from(limit).unwrap_or(LIMIT_MAX)
            });
            Ok((ActivityFilter { actor, after }, limit.min(LIMIT_MAX)))
        }
        (actor, after, limit) => Err([actor.err(), after.err(), limit.err()]
            .into_iter()
            .flatten()
            .collect()),
    }
}
