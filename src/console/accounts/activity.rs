//! The pages that show who did what: one for the owners of an account, and one for an integrator about all its
//! accounts.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::accounts::navigation::base_path;
use crate::console::actor_name::actor_name;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, show};
use crate::console::session::accounts::{Owner, SignedInIntegrator};
use crate::domain::kernel::audit::{ActorKind, ActorWithName, AuditEntry, NamedActor};
use crate::http::forms::activity::read_query;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::operations::activity::{self, ActivityEntry};
use crate::store::operations::audit::{self, AuditFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/activity").page(show_activity),
        path("/dashboard/taxpayers/activity").page(show_integrator_activity),
    ]
}

const PER_PAGE: u64 = 25;
/// The kinds of actors by which the page can filter the activity, each with its label.
const ACTORS: [(ActorKind, &str); 5] = [
    (ActorKind::Contact, "People of the account"),
    (ActorKind::TaxpayerKey, "API keys"),
    (ActorKind::Integrator, "The integrator"),
    (ActorKind::Operator, "Operators of this service"),
    (ActorKind::CommandLine, "The command line"),
];

#[derive(Template)]
#[template(path = "accounts/activity.html")]
struct ActivityPage {
    frame: Frame,
    base: String,
    filter: FormState,
    actors: &'static [(ActorKind, &'static str)],
    lines: Vec<ActivityLine>,
    /// The address of the page with older lines; `None` on the last page.
    older_address: Option<String>,
}

struct ActivityLine {
    entry: ActivityEntry,
    actor: String,
    action: String,
}

#[derive(Template)]
#[template(path = "accounts/integrator_activity.html")]
struct IntegratorActivityPage {
    frame: Frame,
    lines: Vec<AuditLine>,
    pages: PagePosition,
}

struct AuditLine {
    entry: AuditEntry,
    actor: String,
    action: String,
}

async fn show_activity(state: web::Data<ApiState>, Owner(session): Owner, query: Query) -> Answer {
    let (filter, limit) = read_query(&query)?;
    let (entries, next) = activity::owned_by(&state.store, session.taxpayer, filter, limit).await?;
    let base = base_path(&session);
    let older_address = next.map(|next| {
        let mut pairs = Serializer::new(String::new());
        if let Some(kind) = filter.actor {
            pairs.append_pair("actor", kind.as_str());
        }
        format!(
            "{base}/activity?{}",
            pairs.append_pair("cursor", &next.to_string()).finish()
        )
    });
    show(&ActivityPage {
        frame: Frame::for_account(&session, "Activity"),
        base,
        filter: FormState::new(FormValues::from(&query)),
        actors: &ACTORS,
        lines: entries.into_iter().map(ActivityLine::from).collect(),
        older_address,
    })
}

/// GET /dashboard/taxpayers/activity: the audit entries that an integrator may read, newest first.
async fn show_integrator_activity(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let filter = AuditFilter {
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        ..AuditFilter::default()
    };
    let (found, total) = audit::page_owned_by(&state.store, integrator.id, filter, page).await?;
    let lines = found.into_iter().map(|entry| AuditLine {
        actor: actor_name(&NamedActor::from(&ActorWithName::from(entry.actor))),
        action: describe_action(entry.action.as_str()),
        entry,
    });
    let page = IntegratorActivityPage {
        frame: Frame::for_integrator(&integrator, "Activity"),
        lines: lines.collect(),
        pages: PagePosition::new(page, total, "/dashboard/taxpayers/activity", &query),
    };
    show_list(&page.pages, &page)
}

impl From<ActivityEntry> for ActivityLine {
    fn from(entry: ActivityEntry) -> Self {
        Self {
            actor: actor_name(&entry.actor),
            action: describe_action(&entry.action),
            entry,
        }
    }
}

/// Returns an action in words. An action that is not listed here is shown by its name, with spaces for dots and
/// hyphens.
fn describe_action(action: &str) -> String {
    let known = match action {
        "invoice.created" => "Created an invoice",
        "invoice.updated" => "Changed an invoice",
        "invoice.status-updated" => "Changed the status of an invoice",
        "invoice.submit" => "Submitted an invoice",
        "invoice.transmit" => "Transmitted an invoice",
        "invoice.batch-completed" => "Created a batch of invoices",
        "payment.status-updated" => "Changed the payment of an invoice",
        "supplier-invoice.acknowledged" => "Acknowledged a supplier's invoice",
        "taxpayer.rotate-key" => "Created an API key",
        "taxpayer.revoke-key" => "Revoked an API key",
        "taxpayer.update-profile" => "Changed the profile",
        "customer.update" => "Changed a customer",
        "taxpayer.set-integration" => "Changed the integration",
        "webhook.update" => "Changed the webhook",
        "webhook.enable" => "Enabled the webhook",
        "webhook.rotate-secret" => "Created a signing secret",
        "webhook.replay" => "Sent events again",
        "webhook.cancel-replay" => "Cancelled a replay",
        "webhook.share-delivery" => "Created a link to a delivery",
        "contact.add" => "Added a person",
        "contact.change-role" => "Changed a person's role",
        "contact.remove" => "Removed a person",
        "contact.disable" => "Disabled a person",
        "contact.enable" => "Enabled a person",
        "invitation.make" => "Created an invitation",
        "invitation.mail" => "Invited a person by mail",
        "invitation.accept" => "Accepted an invitation",
        "session.sign-in" => "Signed in",
        "session.sign-out" => "Signed out",
        "session.refuse" => "Entered a wrong password",
        "session.end-others" => "Ended the other sessions",
        "password.change" => "Changed the password",
        other => return other.replace(['.', '-'], " "),
    };
    known.to_owned()
}
