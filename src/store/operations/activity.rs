//! The activity of an account: the actions of people and keys, newest first. It merges two logs, the audit and the
//! events of invoices. The next page continues each log after the last line that was shown from it, so that no line is
//! left out or shown twice.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use database::StoreError;
use database::column::RowRef;
use database::sql::dialect;
use jiff::Timestamp;
use sea_orm::sea_query::{Condition, Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::domain::access::api_key::split_audit_state;
use crate::domain::access::caller::KeyKind;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{
    Actor, ActorKind, ActorWithName, AuditAction, AuditEntry, NamedActor,
};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::accounts::{contacts, keys};
use crate::store::events::event_row;
use crate::store::operations::audit_row;

/// The number of newest keys of an account among which a revoked key is searched for its label.
const KEYS_NAMED_MAX: u64 = 1_000;

/// One line of the activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityEntry {
    pub at: Timestamp,
    pub actor: NamedActor,
    /// The action of an audit entry, or the kind of an event.
    pub action: String,
    /// The IRN of an event, or the subject of an audit entry.
    pub subject: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
}

/// The place after which the next page starts in each of the two logs: the sequence of an event and the id of an audit
/// entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityCursor {
    sequence: i64,
    audit: Uuid,
}

impl ActivityCursor {
    const NEWEST: Self = Self {
        sequence: i64::MAX,
        audit: Uuid::max(),
    };
}

impl fmt::Display for ActivityCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.sequence, self.audit)
    }
}

impl FromStr for ActivityCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (sequence, audit) = text.split_once('.').ok_or(())?;
        Ok(Self {
            sequence: sequence.parse().map_err(drop)?,
            audit: audit.parse().map_err(drop)?,
        })
    }
}

/// The filter of the activity: one kind of actor, or all people and keys if it is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActivityFilter {
    pub actor: Option<ActorKind>,
    pub after: Option<ActivityCursor>,
}

/// Loads up to `limit` lines of a taxpayer's activity. Also returns the cursor of the next page; `None` on the last
/// page.
pub async fn owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    filter: ActivityFilter,
    limit: usize,
) -> Result<(Vec<ActivityEntry>, Option<ActivityCursor>), StoreError> {
    let after = filter.after.unwrap_or(ActivityCursor::NEWEST);
    let count = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let events = event_entries(store, taxpayer, filter.actor, after.sequence, count).await?;
    let audit = audit_entries(store, taxpayer, filter.actor, after.audit, count).await?;
    Ok(merge_logs(events, audit, after, limit))
}

/// Merges lines of the two logs, newest first. Returns up to `limit` lines and, if there are more, the cursor after
/// them. `place` is the cursor before them.
fn merge_logs(
    events: Vec<(i64, ActivityEntry)>,
    audit: Vec<(Uuid, ActivityEntry)>,
    mut place: ActivityCursor,
    limit: usize,
) -> (Vec<ActivityEntry>, Option<ActivityCursor>) {
    let mut events = events.into_iter().peekable();
    let mut audit = audit.into_iter().peekable();
    let mut merged = Vec::new();
    while merged.len() < limit {
        let is_event_newer = match (events.peek(), audit.peek()) {
            (None, None) => break,
            (Some((_, event)), Some((_, entry))) => event.at >= entry.at,
            (event, _) => event.is_some(),
        };
        if is_event_newer && let Some((sequence, entry)) = events.next() {
            place.sequence = sequence;
            merged.push(entry);
        } else if let Some((id, entry)) = audit.next() {
            place.audit = id;
            merged.push(entry);
        }
    }
    let has_more = events.peek().is_some() || audit.peek().is_some();
    (merged, has_more.then_some(place))
}

#[derive(FromQueryResult)]
struct EventRow {
    sequence: i64,
    kind: String,
    at: i64,
    irn: Option<String>,
    actor: Option<String>,
    previous_status: Option<String>,
    status: Option<String>,
    amount: Option<String>,
}

async fn event_entries(
    store: &Store,
    taxpayer: TaxpayerId,
    actor: Option<ActorKind>,
    before: i64,
    count: u64,
) -> Result<Vec<(i64, ActivityEntry)>, StoreError> {
    use event_row::Column;
    let is_about_invoices = Condition::any()
        .add(Column::Irn.is_not_null())
        .add(Column::Kind.eq(EventKind::InvoiceBatchCompleted.as_str()));
    let columns = [
        Column::Sequence,
        Column::Kind,
        Column::At,
        Column::Irn,
        Column::Actor,
    ];
    let mut found = event_row::Entity::find().select_only().columns(columns);
    for name in ["previous_status", "status", "amount"] {
        found = found.expr_as(
            Expr::cust(dialect(store.backend()).json_member("data", name)),
            name,
        );
    }
    let rows = found
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Sequence.lt(before))
        .filter(is_about_invoices)
        .filter(actor_condition(actor))
        .order_by_desc(Column::Sequence)
        .limit(count)
        .into_model::<EventRow>()
        .all(store.reader())
        .await?;
    rows.into_iter()
        .filter_map(|row| to_event_entry(taxpayer, row).transpose())
        .collect()
}

/// Selects the events of one kind of actor, or of all actors except the authority and the service. This compares the
/// beginning of the JSON text, because the text of an actor begins with its kind.
fn actor_condition(actor: Option<ActorKind>) -> Condition {
    let starts =
        |kind: ActorKind| event_row::Column::Actor.starts_with(format!(r#"{{"kind":"{kind}""#));
    match actor {
        Some(kind) => Condition::all().add(starts(kind)),
        None => [ActorKind::Authority, ActorKind::Service]
            .into_iter()
            .fold(Condition::all(), |others, kind| {
                others.add(starts(kind).not())
            })
            .add(event_row::Column::Actor.is_not_null()),
    }
}

fn to_event_entry(
    taxpayer: TaxpayerId,
    row: EventRow,
) -> Result<Option<(i64, ActivityEntry)>, StoreError> {
    let at = RowRef {
        table: "events",
        id: format!("{taxpayer}/{}", row.sequence),
    };
    let Some(actor) = row.actor.as_deref().and_then(NamedActor::parse) else {
        return Ok(None);
    };
    let entry = ActivityEntry {
        at: at.moment(row.at)?,
        actor,
        action: row.kind,
        subject: row.irn,
        from: unquote_json(row.previous_status),
        to: unquote_json(row.amount).or_else(|| unquote_json(row.status)),
    };
    Ok(Some((row.sequence, entry)))
}

/// Removes the quotes of a JSON string; `None` if the text is missing, empty or null.
fn unquote_json(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim_matches('"').to_owned())
        .filter(|text| !text.is_empty() && text != "null")
}

async fn audit_entries(
    store: &Store,
    taxpayer: TaxpayerId,
    actor: Option<ActorKind>,
    before: Uuid,
    count: u64,
) -> Result<Vec<(Uuid, ActivityEntry)>, StoreError> {
    use audit_row::Column;
    let mut found = audit_row::Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Id.lt(before.to_string()))
        .order_by_desc(Column::Id)
        .limit(count);
    if let Some(kind) = actor {
        found = found.filter(Column::Actor.eq(kind.as_str()));
    }
    let rows = found.all(store.reader()).await?;
    let entries: Vec<_> = rows
        .into_iter()
        .map(AuditEntry::try_from)
        .collect::<Result<_, _>>()?;
    let names = ActorNames::load(store, taxpayer, &entries).await?;
    let lines = entries
        .into_iter()
        .map(|entry| (entry.id, names.to_activity_entry(entry)));
    Ok(lines.collect())
}

/// Loads the ids and labels of the newest keys that an account created, including those that were revoked. Only the
/// audit entry of the creation keeps the label of a revoked key.
async fn load_created_key_labels(
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<Vec<(String, String)>, StoreError> {
    use audit_row::Column;
    // With the `||` and the plus sign, SQLite finds the entries about the account by the index of subjects.
    let action = Expr::cust("action || ''").eq(AuditAction::RotateTaxpayerKey.as_str());
    let states: Vec<Option<String>> = audit_row::Entity::find()
        .select_only()
        .column(Column::ToState)
        .filter(Column::Subject.eq(taxpayer.to_string()))
        .filter(Expr::cust("+taxpayer_id").eq(taxpayer.0))
        .filter(action)
        .order_by_desc(Column::Id)
        .limit(KEYS_NAMED_MAX)
        .into_tuple()
        .all(store.reader())
        .await?;
    let labels = states.iter().flatten();
    let labels = labels.filter_map(|state| split_audit_state(state));
    Ok(labels
        .map(|(id, label)| (id.to_owned(), label.to_owned()))
        .collect())
}

/// The names of the people and keys of an account, including those that were removed.
struct ActorNames {
    contacts: HashMap<i64, String>,
    keys: HashMap<String, String>,
}

impl ActorNames {
    /// Loads the names of the people and keys of an account that exist, and of the removed ones that made these
    /// entries.
    async fn load(
        store: &Store,
        taxpayer: TaxpayerId,
        entries: &[AuditEntry],
    ) -> Result<Self, StoreError> {
        let people = contacts::owned_by(store, taxpayer).await?;
        let people = people
            .iter()
            .map(|person| (person.contact.id, person.name()));
        let mut contacts: HashMap<_, _> = people.collect();
        let actors = entries.iter().map(|entry| entry.actor);
        let removed = actors.clone().filter_map(Actor::contact_id);
        let removed: BTreeSet<_> = removed.filter(|id| !contacts.contains_key(&id.0)).collect();
        contacts.extend(contacts::removed_names(store, taxpayer, &removed).await?);
        let mut keys = keys::owned_by_accounts(store, KeyKind::Taxpayer, &[taxpayer.0]).await?;
        let keys = keys.remove(&taxpayer.0).unwrap_or_default().into_iter();
        let mut keys: HashMap<_, _> = keys.map(|key| (key.id.clone(), key.label())).collect();
        let mut ids = actors.filter_map(Actor::key_id);
        if ids.any(|id| !keys.contains_key(&id.to_string())) {
            for (id, label) in load_created_key_labels(store, taxpayer).await? {
                keys.entry(id).or_insert(label);
            }
        }
        Ok(Self { contacts, keys })
    }

    /// Converts an audit entry. The reason is left out, because operators write it for other operators only.
    fn to_activity_entry(&self, entry: AuditEntry) -> ActivityEntry {
        let contact = entry
            .actor
            .contact_id()
            .and_then(|id| self.contacts.get(&id.0));
        let key = entry
            .actor
            .key_id()
            .and_then(|id| self.keys.get(&id.to_string()));
        let actor = NamedActor::from(&ActorWithName::from(entry.actor));
        ActivityEntry {
            at: entry.at,
            actor: NamedActor {
                name: contact.or(key).cloned(),
                ..actor
            },
            action: entry.action.to_string(),
            subject: Some(entry.subject),
            from: entry.from_state,
            to: entry.to_state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(second: i64) -> ActivityEntry {
        ActivityEntry {
            at: Timestamp::from_second(second).unwrap(),
            actor: NamedActor::from(&ActorWithName::from(Actor::CommandLine)),
            action: second.to_string(),
            subject: None,
            from: None,
            to: None,
        }
    }

    #[test]
    fn pages_of_both_logs_leave_nothing_out_and_show_nothing_twice() {
        let events: Vec<_> = [9, 7, 7, 1]
            .iter()
            .zip([40, 30, 20, 10])
            .map(|(at, n)| (n, entry(*at)))
            .collect();
        let audit: Vec<_> = [8, 7, 2]
            .iter()
            .zip([3, 2, 1])
            .map(|(at, n)| (Uuid::from_u128(n), entry(*at)))
            .collect();
        let mut place = ActivityCursor::NEWEST;
        let mut seen = Vec::new();
        loop {
            let left_events = events
                .iter()
                .filter(|(n, _)| *n < place.sequence)
                .cloned()
                .collect();
            let left_audit = audit
                .iter()
                .filter(|(id, _)| *id < place.audit)
                .cloned()
                .collect();
            let (page, next) = merge_logs(left_events, left_audit, place, 2);
            seen.extend(page.into_iter().map(|entry| entry.action));
            match next {
                Some(next) => place = next.to_string().parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(seen, ["9", "8", "7", "7", "7", "2", "1"]);
        for odd in ["", "7", "7.x", "x.00000000-0000-0000-0000-000000000000"] {
            assert!(odd.parse::<ActivityCursor>().is_err(), "{odd}");
        }
    }
}
