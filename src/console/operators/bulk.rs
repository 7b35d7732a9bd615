//! Acts on many subjects of a list at once, such as runs or dead letters. An operator ticks rows, or selects all that
//! match the filter. The next page shows how many and which subjects these are, says what will happen, and asks for a
//! reason. Its form has the ids of all these subjects, so the act affects no other subject. Then a notice shows the
//! outcome.

use std::collections::HashSet;

use actix_web::web;
use askama::Template;

use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::{ReasonForm, form_page_status};
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::operators::{Operator, OperatorSession};
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::http::api::ops::bulk::{BulkActionEntry, BulkOutcome, BulkRefusal, SUBJECTS_MAX};
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The maximum number of subjects that the preview lists.
const SHOWN_MAX: usize = 20;
/// The maximum number of different reasons that a notice lists.
const REASONS_MAX: usize = 3;
/// The reason of a refusal if the preview showed a subject and the act can no longer be applied to it.
const CHANGED_TEXT: &str = "It has changed since it was shown";

/// An act that a list offers, such as "pause", with the words that pages use for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkListAct<T> {
    pub(super) target: T,
    pub(super) words: ActWords,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ActWords {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    /// The past participle of the act for the notice, such as "resumed".
    pub(super) past_participle: &'static str,
    /// Says in one sentence what will happen to each subject.
    pub(super) effect: &'static str,
}

/// The buttons above a list.
pub(super) struct BulkBar {
    /// The path of the preview page.
    pub(super) preview: String,
    pub(super) filter: String,
    pub(super) acts: Vec<ActWords>,
    /// True if all subjects that match the filter can be selected at once.
    pub(super) offers_all: bool,
}

impl BulkBar {
    pub(super) fn new<L: BulkList>(list: &ListQuery) -> Self {
        Self {
            preview: format!("{}/preview", L::MOVE_PATH),
            filter: list.with_known_filters(L::FILTERS).query_without_page(),
            acts: L::ACTS.iter().map(|act| act.words).collect(),
            offers_all: list.has_filter(L::FILTERS) || !L::BULK_NEEDS_FILTER,
        }
    }
}

/// The subjects that an operator selected in a list. At least one of the fields is set.
#[derive(Clone, Copy)]
pub(super) struct ListSelection<'a> {
    /// The filter that the subjects match; `None` if each was ticked.
    pub(super) filter: Option<&'a ListQuery>,
    /// The ids of the subjects; `None` for all subjects that match the filter.
    pub(super) ids: Option<&'a [String]>,
}

/// The subjects of a selection, divided into those to which the act can be applied now and the others.
pub(super) struct FoundSubjects<S> {
    /// The subjects to which the act can be applied: at most `SUBJECTS_MAX`.
    pub(super) subjects: Vec<S>,
    /// The number of subjects that match, too, beyond the first `SUBJECTS_MAX`.
    pub(super) beyond_max: u64,
    /// The subjects of the selection to which the act cannot be applied, each with the reason.
    pub(super) refusals: Vec<BulkRefusal>,
}

/// A subject as the preview shows it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubjectLine {
    pub(super) taxpayer: String,
    pub(super) cause: String,
    pub(super) name: String,
}

/// A list of subjects, such as runs, with acts that operators apply to many of them at once.
pub(super) trait BulkList {
    /// The value that an act sets, such as the action on each run; `()` for a list with only one act.
    type Target: Copy + 'static;
    type Subject;
    const LIST_PATH: &'static str;
    const MOVE_PATH: &'static str;
    /// The title of the list's page.
    const TITLE: &'static str;
    /// The word for one subject and for several, such as "run" and "runs".
    const NOUNS: [&'static str; 2];
    const ACTS: &'static [BulkListAct<Self::Target>];
    const AUDITED_AS: AuditAction;
    /// True if "select all" requires a filter.
    const BULK_NEEDS_FILTER: bool;
    /// The names of the filters.
    const FILTERS: &'static [&'static str];

    async fn find_subjects(
        state: &ApiState,
        target: Self::Target,
        selection: ListSelection<'_>,
    ) -> Result<FoundSubjects<Self::Subject>, ApiError>;

    /// Returns the id by which the list and the form name a subject.
    fn subject_id(subject: &Self::Subject) -> String;

    async fn subject_lines(
        state: &ApiState,
        subjects: &[Self::Subject],
    ) -> Result<Vec<SubjectLine>, ApiError>;

    async fn apply_act_to_subjects(
        state: &ApiState,
        target: Self::Target,
        subjects: Vec<Self::Subject>,
        by: &OperatorRequest,
    ) -> BulkOutcome;
}

#[derive(Template)]
#[template(path = "operators/bulk.html")]
struct PreviewPage {
    frame: Frame,
    act: ActWords,
    /// The number of subjects to which the act will be applied, in words, such as "17 runs".
    count_words: String,
    count: usize,
    beyond_max: u64,
    lines: Vec<SubjectLine>,
    refusals: Vec<String>,
    fields: Vec<(&'static str, String)>,
    list_address: String,
    move_path: &'static str,
    form: FormState,
}

/// The fields of the form above the list, and of the form that confirms the preview.
struct BulkForm<T> {
    act: BulkListAct<T>,
    filter: ListQuery,
    /// True if all subjects that match the filter are selected.
    takes_all: bool,
    /// The ids of the ticked subjects. In the confirmation, the ids of all subjects that the preview showed.
    ids: Vec<String>,
}

impl<T: Copy + 'static> BulkForm<T> {
    fn read<L: BulkList<Target = T>>(values: &FormValues) -> Result<Self, ApiError> {
        let word = values.text("act");
        let act = L::ACTS.iter().find(|act| act.words.word == word);
        let act = *act.ok_or_else(ApiError::route_not_found)?;
        let filter = ListQuery::new(&Query::from_text(values.text("filter")));
        if let Some(name) = filter.unknown_filter(L::FILTERS) {
            let known = L::FILTERS.join(", ");
            let message = format!("There is no filter {name}. The filters are {known}.");
            return Err(validation_error(message));
        }
        let takes_all = !values.text("all").is_empty();
        if takes_all && L::BULK_NEEDS_FILTER && !filter.has_filter(L::FILTERS) {
            return Err(validation_error(
                "Filter the list first: all of it cannot be taken.",
            ));
        }
        // The confirmation sends all ids in one field.
        let ids = values.checked_values("id").flat_map(str::split_whitespace);
        Ok(Self {
            act,
            filter,
            takes_all,
            ids: ids.map(str::to_owned).collect(),
        })
    }

    /// Returns the ids of the form. Fails if there are none, or more than `SUBJECTS_MAX`.
    fn chosen_ids(&self) -> Result<&[String], ApiError> {
        if self.ids.is_empty() {
            return Err(validation_error(
                "Nothing is chosen. Go back and tick what you mean.",
            ));
        }
        if self.ids.len() as u64 > SUBJECTS_MAX {
            return Err(validation_error(format!("Choose {SUBJECTS_MAX} at most.")));
        }
        Ok(&self.ids)
    }

    /// Returns the selection of all subjects that match the filter; `None` if subjects were ticked instead.
    fn matching_selection(&self) -> Option<ListSelection<'_>> {
        self.takes_all.then_some(ListSelection {
            filter: Some(&self.filter),
            ids: None,
        })
    }

    /// Returns the address of the list with its filters.
    fn list_address<L: BulkList>(&self) -> String {
        self.filter.address(L::LIST_PATH)
    }

    /// Returns the fields with which the next form selects these subjects.
    fn hidden_fields(&self, ids: &[String]) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("act", self.act.words.word.to_owned()),
            ("filter", self.filter.query_without_page()),
            ("id", ids.join(" ")),
        ];
        if self.takes_all {
            fields.push(("all", "true".to_owned()));
        }
        fields
    }

    /// Describes the selection for the audit.
    fn audit_description(&self) -> String {
        match self.filter.query_without_page() {
            _ if !self.takes_all => format!("{} ticked", self.ids.len()),
            text if text.is_empty() => "all".to_owned(),
            text => text,
        }
    }
}

fn validation_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::ValidationFailed, message)
}

/// Shows to which subjects the act would be applied, and changes nothing.
pub(super) async fn preview<L: BulkList>(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    query: Query,
) -> Answer {
    let request = BulkForm::<L::Target>::read::<L>(&FormValues::from(&query))?;
    let selection = match request.matching_selection() {
        Some(all) => all,
        None => ListSelection {
            filter: None,
            ids: Some(request.chosen_ids()?),
        },
    };
    show_preview::<L>(&state, &session, &request, selection, FormState::default()).await
}

/// Shows the preview of a selection with the form that confirms it.
async fn show_preview<L: BulkList>(
    state: &ApiState,
    session: &OperatorSession,
    request: &BulkForm<L::Target>,
    selection: ListSelection<'_>,
    form: FormState,
) -> Answer {
    let found = L::find_subjects(state, request.act.target, selection).await?;
    let ids: Vec<String> = found.subjects.iter().map(L::subject_id).collect();
    let first = &found.subjects[..found.subjects.len().min(SHOWN_MAX)];
    let mut lines = L::subject_lines(state, first).await?;
    lines.sort();
    let page = PreviewPage {
        frame: Frame::for_operator(session, L::TITLE),
        count_words: count_phrase::<L>(ids.len()),
        count: ids.len(),
        beyond_max: found.beyond_max,
        lines,
        refusals: group_reasons(&found.refusals),
        fields: request.hidden_fields(&ids),
        list_address: request.list_address::<L>(),
        move_path: L::MOVE_PATH,
        act: request.act.words,
        form,
    };
    show_with_status(form_page_status(&page.form), &page)
}

/// Applies the act to the subjects that the preview showed, not to those that match the filter only since then.
pub(super) async fn apply_previewed_act<L: BulkList>(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    form: Form<FormValues>,
) -> Answer {
    let request = BulkForm::<L::Target>::read::<L>(&form.0)?;
    let shown = request.chosen_ids()?;
    let selection = ListSelection {
        filter: request.takes_all.then_some(&request.filter),
        ids: Some(shown),
    };
    let by = match ReasonForm::from(&form.0).to_request_with_reason(&state, &session) {
        Ok(by) => by,
        Err(error) => {
            let form = FormState::with_faults(form.0, error.faults);
            return show_preview::<L>(&state, &session, &request, selection, form).await;
        }
    };
    let target = request.act.target;
    let matching = match request.matching_selection() {
        Some(all) => {
            let found = L::find_subjects(&state, target, all).await?;
            found.subjects.len() as u64 + found.beyond_max
        }
        None => 0,
    };
    let found = L::find_subjects(&state, target, selection).await?;
    let new_count = matching.saturating_sub(found.subjects.len() as u64);
    let changed = refusals_since_preview::<L>(&found, shown);
    let mut outcome = L::apply_act_to_subjects(&state, target, found.subjects, &by).await;
    outcome.refusals.extend(found.refusals);
    outcome.refusals.extend(changed);
    let act = BulkActionEntry {
        action: L::AUDITED_AS,
        action_name: request.act.words.word,
        selection: request.audit_description(),
    };
    outcome.record_in_audit(&state, act, &by).await?;
    Ok(go_to(
        &request.list_address::<L>(),
        &outcome_notice::<L>(request.act.words.past_participle, &outcome, new_count),
    ))
}

/// Returns a refusal for each subject that the preview showed and that the selection no longer finds.
fn refusals_since_preview<L: BulkList>(
    found: &FoundSubjects<L::Subject>,
    shown: &[String],
) -> Vec<BulkRefusal> {
    let subjects = found.subjects.iter().map(L::subject_id);
    let refused = found.refusals.iter().map(|refusal| refusal.id.clone());
    let found: HashSet<String> = subjects.chain(refused).collect();
    let changed = shown.iter().filter(|id| !found.contains(*id));
    changed
        .map(|id| BulkRefusal {
            id: id.clone(),
            message: CHANGED_TEXT.to_owned(),
        })
        .collect()
}

fn count_phrase<L: BulkList>(count: usize) -> String {
    let [one, several] = L::NOUNS;
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Says to how many subjects the act was applied, to how many it was not and why, and how many more match the filter.
fn outcome_notice<L: BulkList>(participle: &str, outcome: &BulkOutcome, new_count: u64) -> String {
    let verb = |count: usize| if count == 1 { "is" } else { "are" };
    let moved = outcome.moved.len();
    let mut sentences = vec![format!(
        "{} {} {participle}.",
        count_phrase::<L>(moved),
        verb(moved)
    )];
    let refused = outcome.refusals.len();
    if refused > 0 {
        let reasons = group_reasons(&outcome.refusals).join("; ");
        sentences.push(format!("{refused} {} not: {reasons}.", verb(refused)));
    }
    if let Some(failure) = &outcome.failure {
        let message = failure.message.trim_end_matches('.');
        sentences.push(format!(
            "The others were not tried: {message}. Do it again."
        ));
    }
    match new_count {
        0 => {}
        1 => sentences.push("1 more matches now: it was not shown and is left.".to_owned()),
        _ => sentences.push(format!(
            "{new_count} more match now: they were not shown and are left."
        )),
    }
    sentences.join(" ")
}

/// Returns the most frequent reasons of refusals, each with the number of subjects that were refused for it.
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
