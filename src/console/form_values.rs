//! The fields of a submitted HTML form. A page turns them into a JSON body, which is checked like the body of an API
//! call. If it has faults, the page shows the form again with its values and the faults.

use actix_web::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;

use crate::domain::kernel::fault::{Fault, Faults};
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The reason of a refusal while the account is paused. The frame of the page says what a pause means.
const PAUSED_TEXT: &str = "Nothing was changed, because this account is paused.";
/// The name of the hidden field with the values that the form had when its page was rendered.
const ORIGINAL_VALUES_FIELD: &str = "before";

/// The fields in the order in which the browser sent them. A group of checkboxes has one entry for each checked box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct FormValues(Vec<(String, String)>);

impl FormValues {
    /// Returns the trimmed value of a field; an empty text if the field was not sent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value.trim())
    }

    /// Returns the value of each checked box of a group.
    pub(crate) fn checked_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns these fields together with others. If both have a field, the value of `others` is used.
    #[must_use]
    pub(crate) fn with_fields(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Adds a hidden field with the original values of all fields, so that the server can tell which ones the user
    /// changed.
    #[must_use]
    pub(crate) fn with_original_values(self) -> Self {
        let query = Serializer::new(String::new())
            .extend_pairs(&self.0)
            .finish();
        self.with_fields(Self::from([(ORIGINAL_VALUES_FIELD, query.as_str())]))
    }

    /// Returns the values that the fields had when the page of the form was rendered.
    pub(crate) fn original_values(&self) -> Self {
        Self::from(&Query::from_text(self.text(ORIGINAL_VALUES_FIELD)))
    }

    /// Returns these fields with line feeds as line breaks, as stored texts have them. A browser sends CR and LF.
    #[must_use]
    pub(crate) fn with_plain_line_breaks(self) -> Self {
        let fields = self.0.into_iter();
        Self(
            fields
                .map(|(name, value)| (name, value.replace("\r\n", "\n")))
                .collect(),
        )
    }

    /// Returns the fields with these names as a JSON object. Blank fields are left out.
    pub(crate) fn to_object(&self, names: &[&str]) -> Map<String, Value> {
        let filled = names
            .iter()
            .map(|name| (*name, self.text(name)))
            .filter(|(_, text)| !text.is_empty());
        filled
            .map(|(name, text)| (name.to_owned(), Value::from(text)))
            .collect()
    }
}

/// Removes the members that the user did not change, so that the form does not undo changes that were made elsewhere
/// since its page was rendered. `before` is the body that the page showed.
pub(crate) fn remove_unchanged(body: &mut Map<String, Value>, before: &Map<String, Value>) {
    body.retain(|name, value| before.get(name) != Some(&*value));
}

/// Gives the members of a group their stored values, unless the user changed one of them. This is for a form whose
/// API call needs all members. `before` is the body that the page showed.
pub(crate) fn keep_stored_group_if_unchanged(
    body: &mut Map<String, Value>,
    before: &Map<String, Value>,
    stored: &Map<String, Value>,
    group: &[&str],
) {
    if group
        .iter()
        .any(|name| body.get(*name) != before.get(*name))
    {
        return;
    }
    for name in group {
        match stored.get(*name) {
            Some(value) => body.insert((*name).to_owned(), value.clone()),
            None => body.remove(*name),
        };
    }
}

impl From<&Query> for FormValues {
    fn from(query: &Query) -> Self {
        query.pairs().collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for FormValues {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Self {
        Self(
            fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

impl<const N: usize> From<[(&str, &str); N]> for FormValues {
    fn from(fields: [(&str, &str); N]) -> Self {
        fields.into_iter().collect()
    }
}

/// A form as a page shows it: the value of each field, and the faults of the last attempt.
#[derive(Debug, Default)]
pub(crate) struct FormState {
    values: FormValues,
    faults: Faults,
}

impl FormState {
    pub(crate) fn new(values: FormValues) -> Self {
        Self {
            values,
            faults: Faults::default(),
        }
    }

    pub(crate) fn with_faults(values: FormValues, faults: Faults) -> Self {
        Self { values, faults }
    }

    /// Returns the form with the reasons of a refusal, which has changed nothing: faults of fields, a conflict, a
    /// limit, a pause of the account or an overload. Returns any other error as it is, because it is not about the
    /// form.
    pub(crate) fn from_refusal(error: ApiError, values: FormValues) -> Result<Self, ApiError> {
        if !error.faults.is_empty() {
            return Ok(Self::with_faults(values, error.faults));
        }
        let is_refusal = error.code == ErrorCode::Overloaded || error.status.is_client_error();
        if !is_refusal || error.status == StatusCode::NOT_FOUND {
            return Err(error);
        }
        let form_fault = if error.is_about_pause() {
            Fault::new("", error.code.as_str(), PAUSED_TEXT)
        } else {
            Fault::new("", error.code.as_str(), error.message)
        };
        Ok(Self::with_faults(values, form_fault.into()))
    }

    pub(crate) fn values(&self) -> &FormValues {
        &self.values
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.values.text(name)
    }

    /// True if this option of a list is chosen, or this box of a group is checked.
    pub(crate) fn has_choice(&self, name: &str, value: &str) -> bool {
        self.values
            .checked_values(name)
            .any(|checked| checked == value)
    }

    pub(crate) fn is_refused(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Returns the messages about a field and about the items of its list; `None` if there are none.
    pub(crate) fn fault(&self, name: &str) -> Option<String> {
        let own_faults = self.faults.iter().filter(|fault| {
            let rest = fault.path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let text = own_faults
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ");
        (!text.is_empty()).then_some(text)
    }

    /// Returns the paths of the fields that have faults.
    pub(crate) fn fault_paths(&self) -> Vec<String> {
        self.faults.iter().map(|fault| fault.path.clone()).collect()
    }

    /// Returns each fault as its field and its sentence, for the summary at the top of a page. A fault of a list's
    /// item gets the field of the list, because the page shows the fault beside the list.
    pub(crate) fn summary(&self) -> Vec<(String, String)> {
        let faults = self.faults.iter();
        faults
            .map(|fault| (path_without_item(&fault.path).to_owned(), fault.to_string()))
            .collect()
    }

    /// Returns the messages about fields that the page does not show.
    pub(crate) fn other_faults(&self, shown: &[&str]) -> Vec<String> {
        let others = self.faults.iter().filter(|fault| {
            let path = fault.path.as_str();
            let root = path.split('.').next().unwrap_or_default();
            !shown.contains(&path) && !shown.contains(&root)
        });
        others.map(ToString::to_string).collect()
    }
}

/// Returns the path of the list if `path` names one of its items, such as `events.1`; else the path itself.
fn path_without_item(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((list, item)) if item.bytes().all(|byte| byte.is_ascii_digit()) => list,
        _ => path,
    }
}

/// Blanks the field of each fault whose field is not on the page, so that its sentence in the summary is not a link.
pub(crate) fn unlink_unshown_fields(
    summary: impl Iterator<Item = (String, String)>,
    is_shown: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let lines = summary.map(|(field, text)| {
        let field = Some(field).filter(|field| is_shown(field));
        (field.unwrap_or_default(), text)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::taxpayer::handle::TaxpayerError;

    fn sample_values() -> FormValues {
        FormValues::from([
            ("city", " Lagos "),
            ("state", " "),
            ("event", "a"),
            ("event", "b"),
        ])
    }

    #[test]
    fn a_body_has_the_filled_fields_only() {
        let body = sample_values().to_object(&["city", "state", "country"]);
        assert_eq!(Value::Object(body), json!({ "city": "Lagos" }));
    }

    #[test]
    fn a_form_tells_the_fields_that_its_page_showed() {
        for city in ["Lagos", "", "A&B=C", "Ìbàdàn %26"] {
            let form = FormValues::from([("city", city)]).with_original_values();
            let sent = form.with_fields(FormValues::from([("city", "Abuja")]));
            assert_eq!(sent.text("city"), "Abuja");
            assert_eq!(sent.original_values().text("city"), city);
        }
        assert_eq!(sample_values().original_values().text("city"), "");
    }

    #[test]
    fn a_group_that_was_not_changed_keeps_what_is_stored_by_now() {
        let group = ["kind", "host"];
        let [old, new, odd] = [json!("old"), json!("new"), json!("odd")];
        let before = json!({ "kind": old });
        for (sent, stored, expected) in [
            (
                json!({ "kind": old }),
                json!({ "kind": new }),
                json!({ "kind": new }),
            ),
            (json!({ "kind": old }), json!({}), json!({})),
            (
                json!({ "kind": old }),
                json!({ "kind": old, "host": new }),
                json!({ "kind": old, "host": new }),
            ),
            (
                json!({ "kind": odd }),
                json!({ "kind": new }),
                json!({ "kind": odd }),
            ),
            (
                json!({ "kind": old, "host": odd }),
                json!({ "kind": new, "host": new }),
                json!({ "kind": old, "host": odd }),
            ),
        ] {
            let mut body = sent.as_object().cloned().unwrap();
            let [before, stored] = [&before, &stored].map(|value| value.as_object().unwrap());
            keep_stored_group_if_unchanged(&mut body, before, stored, &group);
            assert_eq!(Value::Object(body), expected, "{sent} {stored:?}");
        }
    }

    #[test]
    fn a_group_of_boxes_has_each_checked_one() {
        assert_eq!(
            sample_values().checked_values("event").collect::<Vec<_>>(),
            ["a", "b"]
        );
        let form = FormState::new(sample_values());
        assert!(form.has_choice("event", "b") && !form.has_choice("event", "c"));
    }

    #[test]
    fn a_fault_stands_beside_its_field() {
        let faults = [
            ("events.1", "Odd."),
            ("city", "Long."),
            ("other", "Missing."),
        ];
        let faults: Faults = faults
            .map(|(path, text)| Fault::new(path, "format", text))
            .into_iter()
            .collect();
        let form = FormState::with_faults(sample_values(), faults);
        assert_eq!(form.fault("events").as_deref(), Some("Odd."));
        assert_eq!(form.fault("city").as_deref(), Some("Long."));
        assert_eq!(form.fault("event"), None);
        assert_eq!(form.other_faults(&["events", "city"]), ["Missing."]);
        let fields = |summary: Vec<(String, String)>| {
            let fields = summary.into_iter().map(|(field, _)| field);
            fields.collect::<Vec<_>>()
        };
        assert_eq!(fields(form.summary()), ["events", "city", "other"]);
        let shown = unlink_unshown_fields(form.summary().into_iter(), |field| field != "other");
        assert_eq!(fields(shown), ["events", "city", ""]);
    }

    #[test]
    fn a_form_does_not_repeat_what_the_frame_says_of_a_pause() {
        let refused = FormState::from_refusal(TaxpayerError::Paused.into(), sample_values());
        assert_eq!(refused.unwrap().fault("").as_deref(), Some(PAUSED_TEXT));
    }

    #[test]
    fn a_form_keeps_its_input_if_a_refusal_has_changed_nothing() {
        for (code, is_kept) in [
            (ErrorCode::Overloaded, true),
            (ErrorCode::RateLimited, true),
            (ErrorCode::InvalidTransition, true),
            (ErrorCode::PreconditionFailed, true),
            (ErrorCode::TaxpayerLimitReached, true),
            (ErrorCode::WebhookNotConfigured, true),
            (ErrorCode::InvoiceNotFound, false),
            (ErrorCode::InternalError, false),
        ] {
            let refused = FormState::from_refusal(ApiError::new(code, "Later."), sample_values());
            assert_eq!(refused.is_ok(), is_kept, "{code:?}");
            if let Ok(form) = refused {
                assert_eq!(form.fault("").as_deref(), Some("Later."));
                assert_eq!(form.value("city"), "Lagos");
            }
        }
    }
}
