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
use crate::console::badges::Badge;
use crate::console::deadline_words::NEAR_S;
use crate::console::filters;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list;
use crate::store::invoices::work_tabs::{self, WorkTab};
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
    needed: Vec<StoppedRunLine>,
    /// The number of invoices in the tab Waiting; `None` if there are none.
    in_progress: Option<String>,
    /// True if operators hold back invoices of the account.
    is_any_held: bool,
    progress: Vec<ProgressLine>,
    money: Vec<MoneyLine>,
    /// True if there are too many unpaid invoices, so that only those that were due first were summed up.
    is_money_cut: bool,
    has_invoices: bool,
    counts: Vec<StatusCount>,
    webhook: WebhookSummary,
}

/// A kind of task that people of the account have to do, with the number of such tasks.
struct Task {
    class: &'static str,
    count: String,
    what: String,
    act: &'static str,
    path: String,
}

struct StatusCount {
    status: &'static str,
    badge: Badge,
    count: String,
    is_none: bool,
}

/// The counts from which the tasks are made, and the number of invoices in progress.
struct TaskCounts {
    rejected: u64,
    in_progress: u64,
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
    let mut counts = list::count_by_status(store, taxpayer, COUNTED_MAX + 1).await?;
    counts.sort_by_key(|(status, _)| (*status == WorkflowStatus::Cancelled, status.stage()));
    let webhook = WebhookSummary::load(state, taxpayer).await?;
    let needs = TaskCounts::load(state, taxpayer).await?;
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
        banner: outage_banner::banner(&report.incidents, &count_text(needs.stopped.waiting)),
        tasks: tasks(&needs, &webhook, role),
        needed: stopped_run_lines(state, taxpayer, &base, role).await?,
        in_progress: (needs.in_progress > 0).then(|| count_text(needs.in_progress)),
        is_any_held: is_paused || progress.iter().any(|line| line.is_held),
        progress,
        money: money.lines,
        is_money_cut: money.is_cut,
        has_invoices: counts.iter().any(|(_, count)| *count > 0),
        counts: counts
            .into_iter()
            .map(|(status, count)| StatusCount::new(status, count))
            .collect(),
        webhook,
        base,
    };
    part.render().map_err(ApiError::internal)
}

impl TaskCounts {
    async fn load(state: &ApiState, taxpayer: TaxpayerId) -> Result<Self, ApiError> {
        let store = &state.store;
        let now = state.now();
        let near = now
            .saturating_add(SignedDuration::from_secs(NEAR_S))
            .unwrap_or(now);
        let max = COUNTED_MAX + 1;
        let stopped = runs::count_stopped_owned_by(store, taxpayer, now..near, max).await?;
        let tabs = work_tabs::count(store, taxpayer, state.today(), COUNTED_MAX).await?;
        let count = |tab: WorkTab| {
            let found = tabs.iter().find(|one| one.tab == tab);
            found.map_or(0, |one| one.count + u64::from(one.is_more))
        };
        Ok(Self {
            rejected: count(WorkTab::Rejected),
            in_progress: count(WorkTab::Waiting),
            stopped,
            unacknowledged: supplier_invoices::count_unacknowledged_owned_by(store, taxpayer, max)
                .await?,
        })
    }
}

/// Writes a count. A count above `COUNTED_MAX` is written as `1,000+`.
fn count_text(count: u64) -> String {
    invoices::count_text(count.min(COUNTED_MAX), count > COUNTED_MAX)
}

/// Returns the tasks for people, the gravest first. `role` decides whether the link names an act.
fn tasks(needs: &TaskCounts, webhook: &WebhookSummary, role: ContactRole) -> Vec<Task> {
    let may_act = role >= ContactRole::Accountant;
    let act = |label| if may_act { label } else { LOOK };
    let mut tasks = vec![
        Task::new(
            "bad",
            needs.rejected,
            "rejected",
            act("Correct and send again"),
            "/invoices?authority_status=REJECTED&without_cancelled=true",
        ),
        paused_task(&needs.stopped, role),
        Task::new(
            "bad",
            needs.stopped.missed,
            "waiting and past the legal deadline",
            "Look at them",
            IN_PROGRESS,
        ),
        Task::new(
            "warn",
            needs.stopped.near,
            "waiting with a legal deadline in less than a day",
            "Look at them",
            IN_PROGRESS,
        ),
        Task::new(
            "warn",
            needs.unacknowledged,
            "received and not acknowledged",
            act("Acknowledge"),
            "/inbox?open=true",
        ),
    ];
    let (what, path) = match webhook.failing {
        0 | 1 => ("webhook that fails", webhook.path.as_str()),
        _ => ("webhooks that fail", "/webhooks"),
    };
    let mend = if role >= ContactRole::Owner {
        "Mend it"
    } else {
        "Look at it"
    };
    tasks.push(Task::new("bad", webhook.failing, what, mend, path));
    for dead in &webhook.dead {
        let endpoint = match dead.endpoint.as_str() {
            "" => "your webhook",
            label => label,
        };
        let what = format!("failed deliveries to {endpoint}");
        tasks.push(Task::new(
            "warn",
            dead.count,
            what,
            act("Send again"),
            &dead.path,
        ));
    }
    tasks.into_iter().flatten().collect()
}

/// Returns the task about paused runs. The linked list also has the runs that operators hold back.
fn paused_task(stopped: &StoppedCounts, role: ContactRole) -> Option<Task> {
    let try_again = if role >= ContactRole::Accountant {
        "Try again"
    } else {
        LOOK
    };
    let (class, what, act) = match stopped.held {
        0 => ("bad", "failed".to_owned(), try_again),
        held if held == stopped.paused => (
            "warn",
            "held back by an operator of this service".to_owned(),
            LOOK,
        ),
        held => {
            let held = count_text(held);
            let what = format!("failed, {held} of which an operator of this service holds back");
            ("bad", what, try_again)
        }
    };
    let path = "/invoices?authority_status=FAILED&without_cancelled=true";
    Task::new(class, stopped.paused, what, act, path)
}

impl Task {
    /// Returns a task; `None` if its count is 0. `path` is below that of the account.
    fn new(
        class: &'static str,
        count: u64,
        what: impl Into<String>,
        act: &'static str,
        path: &str,
    ) -> Option<Self> {
        (count > 0).then(|| Self {
            class,
            count: count_text(count),
            what: what.into(),
            act,
            path: path.to_owned(),
        })
    }
}

impl StatusCount {
    fn new(status: WorkflowStatus, count: u64) -> Self {
        Self {
            status: status.as_str(),
            badge: status.into(),
            count: count_text(count),
            is_none: count == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::accounts::webhook_health::WebhookHealth;

    fn sample_needs() -> TaskCounts {
        TaskCounts {
            rejected: 1,
            in_progress: 0,
            stopped: StoppedCounts {
                paused: 3,
                ..StoppedCounts::default()
            },
            unacknowledged: 2,
        }
    }

    fn webhook_with_failures(failing: u64) -> WebhookSummary {
        WebhookSummary {
            health: WebhookHealth::from_endpoint(None, None),
            endpoint: String::new(),
            path: "/webhooks".to_owned(),
            failing,
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
            let tasks = tasks(&sample_needs(), &webhook_with_failures(1), role);
            let acts: Vec<_> = tasks.iter().map(|task| task.act).collect();
            assert_eq!(acts.join(", "), expected, "{role}");
        }
    }

    #[test]
    fn each_task_leads_to_the_things_that_it_counts() {
        let tasks = tasks(
            &sample_needs(),
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
            let task = paused_task(&stopped, ContactRole::Owner);
            let words = task.map(|task| format!("{} {}", task.count, task.what));
            assert_eq!(words.as_deref(), expected, "{paused} {held}");
        }
    }
}
