//! Saved views: filters of the list of invoices that a person stores under a name. The list shows links to them, and
//! has forms to save and delete one.

use actix_web::web;

use crate::console::accounts::invoices;
use crate::console::accounts::list_filters::list_query;
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues};
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::accounts::{AccountSession, Reader};
use crate::domain::kernel::fault::Fault;
use crate::http::forms::query::Query;
use crate::http::forms::reader;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::saved_views::{self, VIEWS_MAX, ViewOwner};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/views")
            .form(save_view)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/invoices/views/delete")
            .form(delete_view)
            .allows_form_repeat(),
    ]
}

const NAME_CHARS_MAX: usize = 40;
/// The maximum length of a view's query. Some proxies refuse longer addresses.
const QUERY_BYTES_MAX: usize = 2_000;

/// A link to the list with the filters of a view.
pub(super) struct SavedView {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) is_current: bool,
}

fn view_owner(session: &AccountSession) -> ViewOwner {
    ViewOwner {
        person: session.person.owner,
        taxpayer: session.taxpayer,
    }
}

/// Returns the views of the person who looks at the list with these filters.
pub(super) async fn load(
    state: &ApiState,
    session: &AccountSession,
    values: &FormValues,
) -> Result<Vec<SavedView>, ApiError> {
    let current_filters = view_filters(values);
    let views = saved_views::owned_by(&state.store, view_owner(session)).await?;
    let base = base_path(session);
    let views = views.into_iter().map(|(name, query)| SavedView {
        name,
        address: format!("{base}/invoices?{query}"),
        is_current: query == current_filters,
    });
    Ok(views.collect())
}

/// Returns the filters and the order in the form in which a view stores them.
pub(super) fn view_filters(values: &FormValues) -> String {
    let query = list_query(values, &["per_page"]);
    query.trim_start_matches('?').to_owned()
}

fn read_name(state: &ApiState, form: &FormValues) -> Result<String, ApiError> {
    let typed = form.to_object(&["name"]);
    let read = reader::read(&typed, &state.catalog.get(), |reader| {
        reader.required("name").identifier(NAME_CHARS_MAX)
    })?;
    Ok(read.value)
}

/// POST …/invoices/views: saves the filters in the list's address under a name.
async fn save_view(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    form: Form<FormValues>,
) -> Answer {
    let filters = Query::from_text(form.0.text("filter"));
    let query = view_filters(&FormValues::from(&filters));
    let name = match read_name(&state, &form.0) {
        Ok(name) if query.len() <= QUERY_BYTES_MAX => name,
        read => {
            let too_long = Fault::new("filter", "max", "The filters are too long for a view.");
            let error = read.err().unwrap_or_else(|| too_long.into());
            let refused = FormState::from_refusal(error, form.0)?;
            return invoices::render(&state, &session, &filters, refused).await;
        }
    };
    let notice = if query.is_empty() {
        "A view keeps filters: choose one first.".to_owned()
    } else if saved_views::save(&state.store, view_owner(&session), &name, &query).await? {
        format!("The view {name} was saved.")
    } else {
        format!("You have {VIEWS_MAX} views of this account: delete one first.")
    };
    let address = format!("{}/invoices?{query}", base_path(&session));
    Ok(go_to(&address, &notice))
}

/// POST …/invoices/views/delete: deletes a saved view.
async fn delete_view(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    form: Form<FormValues>,
) -> Answer {
    let name = read_name(&state, &form.0)?;
    saved_views::delete(&state.store, view_owner(&session), &name).await?;
    let address = format!("{}/invoices", base_path(&session));
    Ok(go_to(&address, &format!("The view {name} was deleted.")))
}
