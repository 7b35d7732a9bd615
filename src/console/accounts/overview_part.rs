//! The part of the overview that updates itself: the tasks for people, the runs in progress, the money, and the number
//! of invoices by status.

use askama::Template;
use jiff::SignedDuration;

use crate::console::accounts::overview_money::{self, MoneyLine};
use crate::console::accounts::overview_work::{
    ProgressLine, StoppedRunLine, progress_lines, stopped_run_lines,
};
use crate::console::accounts::webhook_summary::WebhookSummary;
use crate::console::accounts::{invoices, outage_banner};
use crate::console::badges::{Badge, badge};
use crate::console::deadline_words::NEAR_S;
use crate::console::filters;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::codes::{Category, WorkflowStatus};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list;
use crate::store::invoices::work_tabs::{self, FirstDaysInTime, LateCounts, TabCount, WorkTab};
use crate::store::operations::supplier_invoices;
use crate::store::runs::{self, StoppedCounts};

/// Everything is counted up to this number, so that the page is fast even for a large account.
pub(super) const COUNTED_MAX: u64 = 1_000;

/// The anchor of the runs in progress on the page. They are listed with the earliest deadline first.
const IN_PROGRESS: &str = "#in-progress";

#[derive(Template)]
#[template(path = "accounts/overview_live.html")]
struct OverviewPart {
    base: String,
    /// The sentence about an outage of the authority; `None` if there is none.
    banner: Option<String>,
    tasks: Vec<Task>,
    stopped_runs: Vec<StoppedRunLine>,
    /// The number of invoices in the tab Waiting; `None` if there are none.
    in_progress: Option<String>,
    /// True if operators hold back invoices of the account.
    is_any_held: bool,
    progress: Vec<ProgressLine>,
    money: Vec<MoneyLine>,
    /// True if there are too many unpaid invoices, so that only those that were due first were summed up.
    is_money_cut: bool,
    has_invoices: bool,
    /// The address of the form for a new invoice; `None` for those who only look.
    new_invoice: Option<String>,
    counts: Vec<StateCount>,
    webhook: WebhookSummary,
}

/// A kind of task that people of the account have to do, with the number of such tasks.
struct Task {
    class: &'static str,
    count: String,
    description: String,
    link_label: &'static str,
    path: String,
}

/// The number of invoices in a state, with the address of the list of these invoices.
struct StateCount {
    badge: Badge,
    count: String,
    path: String,
    is_none: bool,
}

/// The counts from which the tasks are made, and the number of invoices in progress.
struct TaskCounts {
    rejected: u64,
    in_progress: u64,
    /// The number of approved invoices that were not submitted.
    to_submit: u64,
    /// The numbers of these invoices, and of drafts, that are past the legal deadline.
    late: LateCounts,
    /// The first day of issue, in each category, whose invoices are not late.
    in_time: FirstDaysInTime,
    stopped: StoppedCounts,
    unacknowledged: u64,
}

/// The label of the link to tasks that the person may only look at.
const LOOK: &str = "Look at them";

/// Renders the part for a person of this role, who is offered only what the role may do.
pub(super) async fn render(
    state: &ApiState,
    taxpayer: TaxpayerId,
    role: ContactRole,
) -> Result<String, ApiError> {
    let store = &state.store;
    let counts = list::count_by_status(store, taxpayer, COUNTED_MAX + 1).await?;
    let tabs = work_tabs::count(store, taxpayer, state.today(), COUNTED_MAX).await?;
    let webhook = WebhookSummary::load(state, taxpayer).await?;
    let task_counts = TaskCounts::load(state, taxpayer, &tabs).await?;
    let report = state.incidents.last_report();
    let money = overview_money::load(state, taxpayer).await?;
    let base = format!("/dashboard/{taxpayer}");
    let progress = progress_lines(state, taxpayer, &base).await?;
    let is_paused = state
        .pipeline
        .backlog
        .holds()
        .find_hold(taxpayer, None)
        .is_some();
    let part = OverviewPart {
        banner: outage_banner::banner(&report.incidents, &count_text(task_counts.stopped.waiting)),
        tasks: tasks(&task_counts, &webhook, role),
        stopped_runs: stopped_run_lines(state, taxpayer, &base, role).await?,
        in_progress: (task_counts.in_progress > 0).then(|| count_text(task_counts.in_progress)),
        is_any_held: is_paused || progress.iter().any(|line| line.is_held),
        progress,
        money: money.lines,
        is_money_cut: money.is_cut,
        has_invoices: counts.iter().any(|(_, count)| *count > 0),
        new_invoice: (role >= ContactRole::Accountant).then(|| format!("{base}/invoices/new")),
        counts: state_counts(&tabs, &counts),
        webhook,
        base,
    };
    part.render().map_err(ApiError::internal)
}

impl TaskCounts {
    async fn load(
        state: &ApiState,
        taxpayer: TaxpayerId,
        tabs: &[TabCount],
    ) -> Result<Self, ApiError> {
        let store = &state.store;
        let now = state.now();
        let near = now
            .saturating_add(SignedDuration::from_secs(NEAR_S))
            .unwrap_or(now);
        let max = COUNTED_MAX + 1;
        let stopped = runs::count_stopped_owned_by(store, taxpayer, now..near, max).await?;
        let deadlines = state.settings.deadlines;
        let days = FirstDaysInTime {
            b2b: deadlines.first_day_in_time(Category::B2B, now),
            b2c: deadlines.first_day_in_time(Category::B2C, now),
            b2g: deadlines.first_day_in_time(Category::B2G, now),
        };
        Ok(Self {
            rejected: tab_count(tabs, WorkTab::Rejected),
            in_progress: tab_count(tabs, WorkTab::Waiting),
            to_submit: tab_count(tabs, WorkTab::ToSubmit),
            late: work_tabs::count_late(store, taxpayer, days, COUNTED_MAX).await?,
            in_time: days,
            stopped,
            unacknowledged: supplier_invoices::count_unacknowledged_owned_by(store, taxpayer, max)
                .await?,
        })
    }
}

/// Returns the number of invoices in a tab; one more than `COUNTED_MAX` if there are more than were counted.
fn tab_count(tabs: &[TabCount], tab: WorkTab) -> u64 {
    let found = tabs.iter().find(|one| one.tab == tab);
    found.map_or(0, |one| one.count + u64::from(one.is_more))
}

/// Returns the number of invoices in each state, in the order in which an invoice goes through them. The states up to
/// the signature are tabs of the list, so that both show the same numbers.
fn state_counts(tabs: &[TabCount], counts: &[(WorkflowStatus, u64)]) -> Vec<StateCount> {
    let in_tabs = [
        (WorkTab::Draft, "idle"),
        (WorkTab::ToSubmit, "info"),
        (WorkTab::Waiting, "wait"),
        (WorkTab::Attention, "bad"),
        (WorkTab::Signed, "ok"),
    ];
    let in_tabs = in_tabs.into_iter().map(|(tab, class)| {
        let (label, filters) = invoices::tab_label_and_filters(tab);
        StateCount::new(badge(class, label), filters, tab_count(tabs, tab))
    });
    let further = [
        WorkflowStatus::Transmitted,
        WorkflowStatus::Reported,
        WorkflowStatus::Cancelled,
    ];
    let further = further.into_iter().map(|status| {
        let found = counts.iter().find(|(known, _)| *known == status);
        let count = found.map_or(0, |(_, count)| *count);
        StateCount::new(status.into(), &format!("status={status}"), count)
    });
    in_tabs.chain(further).collect()
}

/// Writes a count. A count above `COUNTED_MAX` is written as `1,000+`.
fn count_text(count: u64) -> String {
    invoices::count_text(count.min(COUNTED_MAX), count > COUNTED_MAX)
}

/// Returns the tasks for people, the gravest first. `role` decides whether the link names an act.
fn tasks(task_counts: &TaskCounts, webhook: &WebhookSummary, role: ContactRole) -> Vec<Task> {
    let may_act = role >= ContactRole::Accountant;
    let role_label = |label| if may_act { label } else { LOOK };
    let mut tasks = vec![
        Task::new(
            "bad",
            task_counts.rejected,
            "rejected",
            role_label("Correct and send again"),
            "/invoices?authority_status=REJECTED&without_cancelled=true",
        ),
        paused_task(&task_counts.stopped, role_label("Try again")),
        to_submit_task(task_counts, role_label("Submit")),
        late_drafts_task(
            task_counts.late.drafts,
            task_counts.in_time,
            role_label("Approve and submit"),
        ),
        Task::new(
            "bad",
            task_counts.stopped.missed,
            "waiting and past the legal deadline",
            "Look at them",
            IN_PROGRESS,
        ),
        Task::new(
            "warn",
            task_counts.stopped.near,
            "waiting with a legal deadline in less than a day",
            "Look at them",
            IN_PROGRESS,
        ),
        Task::new(
            "warn",
            task_counts.unacknowledged,
            "received and not acknowledged",
            role_label("Acknowledge"),
            "/inbox?open=true",
        ),
    ];
    let (description, path) = match webhook.failing_count {
        0 | 1 => ("webhook that fails", webhook.path.as_str()),
        _ => ("webhooks that fail", "/webhooks"),
    };
    let link_label = if role >= ContactRole::Owner {
        "Mend it"
    } else {
        "Look at it"
    };
    tasks.push(Task::new(
        "bad",
        webhook.failing_count,
        description,
        link_label,
        path,
    ));
    for dead in &webhook.dead {
        let endpoint = match dead.endpoint.as_str() {
            "" => "your webhook",
            label => label,
        };
        let description = format!("failed deliveries to {endpoint}");
        tasks.push(Task::new(
            "warn",
            dead.count,
            description,
            role_label("Send again"),
            &dead.path,
        ));
    }
    tasks.into_iter().flatten().collect()
}

/// Returns the task about paused runs. The linked list also has the runs that operators hold back. `try_again` is the
/// label of the link to those that the person may continue.
fn paused_task(stopped: &StoppedCounts, try_again: &'static str) -> Option<Task> {
    let (class, description, link_label) = match stopped.held {
        0 => ("bad", "failed".to_owned(), try_again),
        held if held == stopped.paused => (
            "warn",
            "held back by an operator of this service".to_owned(),
            LOOK,
        ),
        held => {
            let held = count_text(held);
            let description =
                format!("failed, {held} of which an operator of this service holds back");
            ("bad", description, try_again)
        }
    };
    let path = "/invoices?authority_status=FAILED&without_cancelled=true";
    Task::new(class, stopped.paused, description, link_label, path)
}

/// Returns the task about drafts that are past their legal deadline. The list has those with the earliest day of issue
/// first, and ends at the last day whose drafts of some category are late. `link_label` is the label of the link to the
/// list. It is not used if the list may also have drafts that are not late, because their category has more time.
fn late_drafts_task(
    count: u64,
    in_time: FirstDaysInTime,
    link_label: &'static str,
) -> Option<Task> {
    let first = in_time.b2b.max(in_time.b2c).max(in_time.b2g);
    let is_same_day = in_time.b2b == in_time.b2c && in_time.b2c == in_time.b2g;
    let link_label = if is_same_day { link_label } else { LOOK };
    let last_late = first.yesterday().unwrap_or(first);
    let description = match count {
        1 => "draft past the legal deadline",
        _ => "drafts past the legal deadline",
    };
    let (_, filters) = invoices::tab_label_and_filters(WorkTab::Draft);
    let path = format!("/invoices?{filters}&date_to={last_late}&sort=invoice_date");
    Task::new("warn", count, description, link_label, &path)
}

/// Returns the task about approved invoices that were not submitted. The list has those with the earliest day of issue
/// first. `submit` is the label of the link to it.
fn to_submit_task(task_counts: &TaskCounts, submit: &'static str) -> Option<Task> {
    let (class, description) = match task_counts.late.to_submit {
        0 => ("info", "approved and not submitted".to_owned()),
        late => {
            let is_more = task_counts.to_submit > COUNTED_MAX;
            let late = invoices::count_text(late, is_more);
            let description = format!("approved and not submitted, {late} past the legal deadline");
            ("bad", description)
        }
    };
    let (_, filters) = invoices::tab_label_and_filters(WorkTab::ToSubmit);
    let path = format!("/invoices?{filters}&sort=invoice_date");
    Task::new(class, task_counts.to_submit, description, submit, &path)
}

impl Task {
    /// Returns a task; `None` if its count is 0. `path` is below that of the account.
    fn new(
        class: &'static str,
        count: u64,
        description: impl Into<String>,
        link_label: &'static str,
        path: &str,
    ) -> Option<Self> {
        (count > 0).then(|| Self {
            class,
            count: count_text(count),
            description: description.into(),
            link_label,
            path: path.to_owned(),
        })
    }
}

impl StateCount {
    /// `filters` is the query of the list of these invoices.
    fn new(badge: Badge, filters: &str, count: u64) -> Self {
        Self {
            badge,
            count: count_text(count),
            path: format!("/invoices?{filters}"),
            is_none: count == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;
    use crate::console::accounts::webhook_health::WebhookHealth;

    fn sample_counts() -> TaskCounts {
        TaskCounts {
            rejected: 1,
            in_progress: 0,
            to_submit: 0,
            late: LateCounts::default(),
            in_time: days_in_time(20),
            stopped: StoppedCounts {
                paused: 3,
                ..StoppedCounts::default()
            },
            unacknowledged: 2,
        }
    }

    /// Returns the first days in time: this day of March for B2C, and the 18th for the others.
    fn days_in_time(b2c: i8) -> FirstDaysInTime {
        FirstDaysInTime {
            b2b: Date::constant(2026, 3, 18),
            b2c: Date::constant(2026, 3, b2c),
            b2g: Date::constant(2026, 3, 18),
        }
    }

    #[test]
    fn late_drafts_are_listed_up_to_the_last_late_day_and_no_act_is_named_over_others() {
        for (b2c, last, link_label) in [(20, "2026-03-19", LOOK), (18, "2026-03-17", "Submit")] {
            let task = late_drafts_task(2, days_in_time(b2c), "Submit").unwrap();
            let path = format!(
                "/invoices?status=draft&authority_status=PENDING&date_to={last}&sort=invoice_date"
            );
            assert_eq!((task.path, task.link_label), (path, link_label), "{b2c}");
        }
        assert!(late_drafts_task(0, days_in_time(20), "Submit").is_none());
    }

    fn webhook_with_failures(failing_count: u64) -> WebhookSummary {
        WebhookSummary {
            health: WebhookHealth::from_endpoint(None, None),
            endpoint: String::new(),
            path: "/webhooks".to_owned(),
            failing_count,
            dead: Vec::new(),
        }
    }

    #[test]
    fn a_task_names_an_act_only_to_those_who_may_do_it() {
        for (role, expected) in [
            (
                ContactRole::ReadOnly,
                "Look at them, Look at them, Look at them, Look at it",
            ),
            (
                ContactRole::Accountant,
                "Correct and send again, Try again, Acknowledge, Look at it",
            ),
            (
                ContactRole::Owner,
                "Correct and send again, Try again, Acknowledge, Mend it",
            ),
        ] {
            let tasks = tasks(&sample_counts(), &webhook_with_failures(1), role);
            let acts: Vec<_> = tasks.iter().map(|task| task.link_label).collect();
            assert_eq!(acts.join(", "), expected, "{role}");
        }
    }

    #[test]
    fn each_task_leads_to_a_list_of_what_it_counts() {
        let tasks = tasks(
            &sample_counts(),
            &webhook_with_failures(0),
            ContactRole::Owner,
        );
        let found: Vec<_> = tasks
            .iter()
            .map(|task| (task.count.as_str(), task.path.as_str()))
            .collect();
        let expected = [
            (
                "1",
                "/invoices?authority_status=REJECTED&without_cancelled=true",
            ),
            (
                "3",
                "/invoices?authority_status=FAILED&without_cancelled=true",
            ),
            ("2", "/inbox?open=true"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_task_of_unsubmitted_invoices_counts_the_late_ones() {
        for (to_submit, late, expected) in [
            (0, 0, None),
            (2, 0, Some("info 2 approved and not submitted")),
            (
                3,
                1,
                Some("bad 3 approved and not submitted, 1 past the legal deadline"),
            ),
            (
                1_001,
                40,
                Some("bad 1,000+ approved and not submitted, 40+ past the legal deadline"),
            ),
        ] {
            let task_counts = TaskCounts {
                to_submit,
                late: LateCounts {
                    drafts: 0,
                    to_submit: late,
                },
                ..sample_counts()
            };
            let task = to_submit_task(&task_counts, "Submit");
            let words =
                task.map(|task| format!("{} {} {}", task.class, task.count, task.description));
            assert_eq!(words.as_deref(), expected, "{to_submit} {late}");
        }
    }

    #[test]
    fn each_state_has_the_number_of_its_list() {
        let tab = |tab, count| TabCount {
            tab,
            count,
            is_more: count == COUNTED_MAX,
        };
        let tabs = [
            tab(WorkTab::Draft, 2),
            tab(WorkTab::ToSubmit, 3),
            tab(WorkTab::Signed, COUNTED_MAX),
        ];
        let counts = [
            (WorkflowStatus::Draft, 9),
            (WorkflowStatus::Paid, 4),
            (WorkflowStatus::Cancelled, 1),
        ];
        let states = state_counts(&tabs, &counts).into_iter();
        let shown = states.filter(|state| !state.is_none);
        let found: Vec<_> = shown
            .map(|state| format!("{} {} {}", state.count, state.badge.text, state.path))
            .collect();
        let expected = [
            "2 Draft /invoices?status=draft&authority_status=PENDING",
            "3 To submit /invoices?status=approved,paid&authority_status=PENDING",
            "1,000+ Signed /invoices?status=submitted",
            "1 Cancelled /invoices?status=cancelled",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_that_an_operator_holds_back_is_not_called_failed() {
        for (paused, held, expected) in [
            (0, 0, None),
            (2, 0, Some("2 failed")),
            (2, 2, Some("2 held back by an operator of this service")),
            (
                3,
                1,
                Some("3 failed, 1 of which an operator of this service holds back"),
            ),
        ] {
            let stopped = StoppedCounts {
                paused,
                held,
                ..StoppedCounts::default()
            };
            let task = paused_task(&stopped, "Try again");
            let words = task.map(|task| format!("{} {}", task.count, task.description));
            assert_eq!(words.as_deref(), expected, "{paused} {held}");
        }
    }
}
