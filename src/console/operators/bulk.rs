//! Acts on many things of a list at once. An operator ticks rows, or takes all that match the filter; the next page
//! shows how many and which they are, says what will happen and asks for a reason; then a notice says what came of it.

use actix_web::web;
use askama::Template;

use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::operators::Operator;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::http::api::ops::bulk::{BulkAct, BulkOutcome, BulkRefusal};
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The maximum number of things that the preview names.
const SHOWN_MAX: usize = 20;
/// The maximum number of different reasons that a notice names.
const REASONS_MAX: usize = 3;

/// An act that a list offers, with its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Act<T> {
    pub(super) to: T,
    pub(super) words: ActWords,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ActWords {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    /// What has been done, such as "resumed".
    pub(super) done: &'static str,
    /// Says in one sentence what will happen to each thing.
    pub(super) effect: &'static str,
}

/// The buttons above a list.
pub(super) struct BulkBar {
    /// The address of the preview.
    pub(super) preview: String,
    pub(super) filter: String,
    pub(super) acts: Vec<ActWords>,
    /// True if all that match can be taken.
    pub(super) offers_all: bool,
}

impl BulkBar {
    pub(super) fn new<L: BulkList>(list: &ListQuery) -> Self {
        Self {
            preview: format!("{}/preview", L::MOVE_PATH),
            filter: list.filter_text(),
            acts: L::ACTS.iter().map(|act| act.words).collect(),
            offers_all: list.has_filter() || !L::NEEDS_FILTER,
        }
    }
}

/// The things that an operator took from a list.
pub(super) enum Selection {
    Ticked(Vec<String>),
    /// All that match this filter.
    Matching(ListQuery),
}

impl Selection {
    fn describe(&self) -> String {
        match self {
            Self::Ticked(ids) => format!("{} ticked", ids.len()),
            Self::Matching(filter) => match filter.filter_text() {
                text if text.is_empty() => "all".to_owned(),
                text => text,
            },
        }
    }
}

/// The things of a selection that the act can move now.
pub(super) struct Found<S> {
    /// At most `SUBJECTS_MAX`.
    pub(super) subjects: Vec<S>,
    /// The number of things beyond these that match, too.
    pub(super) others: u64,
    /// The things of the selection that the act cannot move.
    pub(super) refusals: Vec<BulkRefusal>,
}

/// A thing as the preview names it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubjectLine {
    pub(super) taxpayer: String,
    pub(super) cause: String,
    pub(super) name: String,
}

/// A list whose things operators can move together.
pub(super) trait BulkList {
    /// What an act does to each thing.
    type To: Copy + 'static;
    type Subject;
    const LIST_PATH: &'static str;
    const MOVE_PATH: &'static str;
    /// The title of the page of the list.
    const TITLE: &'static str;
    /// One thing and several, such as "run" and "runs".
    const NOUNS: [&'static str; 2];
    const ACTS: &'static [Act<Self::To>];
    const AUDITED_AS: AuditAction;
    /// True if all things can only be taken with a filter.
    const NEEDS_FILTER: bool;

    async fn find(
        state: &ApiState,
        to: Self::To,
        selection: &Selection,
    ) -> Result<Found<Self::Subject>, ApiError>;

    /// Returns how many runs, deliveries or other work an act on the subject changes.
    fn count(subject: &Self::Subject) -> usize;

    async fn lines(
        state: &ApiState,
        subjects: &[Self::Subject],
    ) -> Result<Vec<SubjectLine>, ApiError>;

    async fn apply(
        state: &ApiState,
        to: Self::To,
        subjects: Vec<Self::Subject>,
        by: &OperatorRequest,
    ) -> BulkOutcome;
}

#[derive(Template)]
#[template(path = "operators/bulk.html")]
struct PreviewPage {
    frame: Frame,
    act: ActWords,
    /// The number of things that are moved, in words, such as "17 runs".
    counted: String,
    count: usize,
    others: u64,
    lines: Vec<SubjectLine>,
    refusals: Vec<String>,
    fields: Vec<(&'static str, String)>,
    list_address: String,
    move_path: &'static str,
}

/// The fields of both forms.
struct Request<T> {
    act: Act<T>,
    selection: Selection,
    filter: String,
}

impl<T: Copy + 'static> Request<T> {
    fn read<L: BulkList<To = T>>(values: &FormValues) -> Result<Self, ApiError> {
        let word = values.text("act");
        let act = L::ACTS.iter().find(|act| act.words.word == word);
        let act = *act.ok_or_else(ApiError::route_not_found)?;
        let filter = values.text("filter").to_owned();
        let list = ListQuery::new(&Query::from_text(&filter));
        let ids: Vec<_> = values.checked_values("id").map(str::to_owned).collect();
        let selection = if values.text("all").is_empty() {
            Selection::Ticked(ids)
        } else if L::NEEDS_FILTER && !list.has_filter() {
            return Err(refusal("Filter the list first: all of it cannot be taken."));
        } else {
            Selection::Matching(list)
        };
        if matches!(&selection, Selection::Ticked(ids) if ids.is_empty()) {
            return Err(refusal(
                "Nothing is chosen. Go back and tick what you mean.",
            ));
        }
        Ok(Self {
            act,
            selection,
            filter,
        })
    }

    /// Returns the address of the list, filtered as it was.
    fn list_address<L: BulkList>(&self) -> String {
        ListQuery::new(&Query::from_text(&self.filter)).address(L::LIST_PATH)
    }

    /// Returns the fields that repeat the request in the next form.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("act", self.act.words.word.to_owned()),
            ("filter", self.filter.clone()),
        ];
        match &self.selection {
            Selection::Matching(_) => fields.push(("all", "true".to_owned())),
            Selection::Ticked(ids) => fields.extend(ids.iter().map(|id| ("id", id.clone()))),
        }
        fields
    }
}

fn refusal(message: &'static str) -> ApiError {
    ApiError::new(ErrorCode::ValidationFailed, message)
}

/// Shows what an act would move, and changes nothing.
pub(super) async fn preview<L: BulkList>(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    query: Query,
) -> Answer {
    let request = Request::<L::To>::read::<L>(&FormValues::from(&query))?;
    let found = L::find(&state, request.act.to, &request.selection).await?;
    let count: usize = found.subjects.iter().map(L::count).sum();
    let first = &found.subjects[..found.subjects.len().min(SHOWN_MAX)];
    let mut lines = L::lines(&state, first).await?;
    lines.sort();
    let mut fields = request.fields();
    fields.push(("count", count.to_string()));
    show(&PreviewPage {
        frame: Frame::for_operator(&session, L::TITLE),
        counted: count_phrase::<L>(count),
        count,
        others: found.others,
        lines,
        refusals: group_reasons(&found.refusals),
        fields,
        list_address: request.list_address::<L>(),
        move_path: L::MOVE_PATH,
        act: request.act.words,
    })
}

/// Moves what the preview showed. Things that match since then are left for the next time.
pub(super) async fn go<L: BulkList>(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    form: Form<FormValues>,
) -> Answer {
    let request = Request::<L::To>::read::<L>(&form.0)?;
    let reason = form.0.text("reason").to_owned();
    let reason = ReasonForm { reason }.read_required(&state)?;
    let by = OperatorRequest {
        operator_id: session.id,
        reason: Some(reason),
    };
    let shown: usize = form.0.text("count").parse().unwrap_or_default();
    let mut found = L::find(&state, request.act.to, &request.selection).await?;
    let mut taken = 0;
    found.subjects.retain(|subject| {
        taken += L::count(subject);
        taken <= shown
    });
    let mut outcome = L::apply(&state, request.act.to, found.subjects, &by).await;
    outcome.refusals.extend(found.refusals);
    let act = BulkAct {
        action: L::AUDITED_AS,
        word: request.act.words.word,
        selection: request.selection.describe(),
    };
    outcome.record(&state, act, &by).await?;
    Ok(go_to(
        &request.list_address::<L>(),
        &notice::<L>(request.act.words.done, &outcome),
    ))
}

fn count_phrase<L: BulkList>(count: usize) -> String {
    let [one, several] = L::NOUNS;
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Says how many things were moved, how many were not, and why.
fn notice<L: BulkList>(done: &str, outcome: &BulkOutcome) -> String {
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let moved = outcome.moved;
    let mut sentences = vec![format!(
        "{} {} {done}.",
        count_phrase::<L>(moved),
        is(moved)
    )];
    let refused = outcome.refusals.len();
    if refused > 0 {
        let reasons = group_reasons(&outcome.refusals).join("; ");
        sentences.push(format!("{refused} {} not: {reasons}.", is(refused)));
    }
    if let Some(failure) = &outcome.failure {
        let message = failure.message.trim_end_matches('.');
        sentences.push(format!(
            "The others were not tried: {message}. Do it again."
        ));
    }
    sentences.join(" ")
}

/// Returns the most frequent reasons, each with the number of things that it stopped.
fn group_reasons(refusals: &[BulkRefusal]) -> Vec<String> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for refusal in refusals {
        match groups.iter_mut().find(|(text, _)| *text == refusal.message) {
            Some((_, count)) => *count += 1,
            None => groups.push((&refusal.message, 1)),
        }
    }
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = groups.iter().take(REASONS_MAX);
    shown
        .map(|(text, count)| format!("{} ({count})", text.trim_end_matches('.')))
        .collect()
}
