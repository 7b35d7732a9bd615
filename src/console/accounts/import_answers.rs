//! Asks for values that an imported file lacks. A part of the import page has the form, and the answers are added to
//! the import profile. The script of the page then requests the preview again.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use serde_json::{Map, Value, json};

use crate::actors::taxpayer::commands::AddImportAnswers;
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::import::answers::{CustomerAnswers, ImportAnswers};
use crate::domain::import::profile::{ImportProfile, is_profile_field};
use crate::domain::import::record::Question;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::{import_profile, reader};
use crate::http::paths::{Path, path};
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::state::ApiState;

/// The maximum number of customers that one form asks about. The next preview asks about the others.
const GROUPS_MAX: usize = 20;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/import/answers")
            .form(save_answers)
            .allows_form_repeat(),
    ]
}

/// The form with the questions of a preview.
#[derive(Template)]
#[template(path = "accounts/import_answers.html")]
pub(super) struct AnswersForm {
    frame: Frame,
    base: String,
    groups: Vec<AnswerGroup>,
    /// The number of further customers, about whom the form does not ask.
    unlisted_customers: usize,
    form: FormState,
}

/// The part of the page that says that the answers are stored.
#[derive(Template)]
#[template(path = "accounts/import_answers_kept.html")]
struct SavedAnswersPart {
    count: usize,
}

/// The fields whose values the file lacks: for one customer, or for every customer if number and name are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AnswerGroup {
    /// The beginning of the names of the group's form fields.
    prefix: String,
    customer_no: String,
    name: String,
    fields: Vec<String>,
}

impl AnswersForm {
    /// Returns the form about the questions of a preview; `None` if there are none.
    pub(super) fn new(session: &AccountSession, questions: &[Question]) -> Option<Self> {
        let groups = group_questions(questions);
        let asked_count = groups
            .iter()
            .filter(|group| !group.applies_by_default())
            .count();
        let customer_count = questions
            .iter()
            .filter(|one| is_about_one_customer(one))
            .count();
        (!groups.is_empty()).then(|| Self {
            frame: Frame::for_account(session, "Import"),
            base: base_path(session),
            unlisted_customers: customer_count.saturating_sub(asked_count),
            groups,
            form: FormState::default(),
        })
    }
}

impl AnswerGroup {
    /// True if the answers apply to every customer without answers of its own.
    fn applies_by_default(&self) -> bool {
        self.customer_no.is_empty() && self.name.is_empty()
    }

    fn title(&self) -> String {
        match (self.customer_no.as_str(), self.name.as_str()) {
            ("", "") => "Every customer that lacks it".to_owned(),
            ("", name) => name.to_owned(),
            (no, "") => no.to_owned(),
            (no, name) => format!("{name} ({no})"),
        }
    }

    /// Returns the names of the fields, separated by commas.
    fn field_names(&self) -> String {
        self.fields.join(",")
    }

    /// Returns the name of the form field for one of the group's fields.
    fn field_name(&self, field: &str) -> String {
        format!("{}.{field}", self.prefix)
    }

    /// Returns the answers that the form has for this group, as the members of a profile.
    fn filled_answers(&self, values: &FormValues) -> Map<String, Value> {
        let typed = self.fields.iter().map(|field| {
            let text = values.text(&self.field_name(field));
            (field.clone(), text)
        });
        typed
            .filter(|(_, text)| !text.is_empty())
            .map(|(field, text)| (field, Value::from(text)))
            .collect()
    }

    /// Returns the key of the customer in a profile: its number, or its name if it has no number.
    fn profile_key(&self) -> &str {
        match self.customer_no.as_str() {
            "" => &self.name,
            no => no,
        }
    }

    /// Turns a fault of the profile's body into a fault of the form. `path` is the path of the answers in the body.
    fn form_fault(&self, fault: &Fault, path: &str) -> Fault {
        let Some(field) = fault.path.strip_prefix(path) else {
            return Fault::new("", fault.rule(), fault.to_string());
        };
        let text = fault.to_string().replace(&fault.path, &field_label(field));
        Fault::new(self.field_name(field), fault.rule(), text)
    }

    /// Returns the body of a profile that has only these answers, and the path of its answers.
    fn profile_body(&self, answers: Map<String, Value>) -> (Map<String, Value>, String) {
        let (member, value, path) = if self.applies_by_default() {
            ("defaults", Value::from(answers), "defaults.".to_owned())
        } else {
            let key = self.profile_key();
            let path = format!("customers.{key}.");
            ("customers", json!({ key: answers }), path)
        };
        (Map::from_iter([(member.to_owned(), value)]), path)
    }

    /// Adds the values of `read`, the profile that was read from the body of this group, to `answers`.
    fn add_to_answers(&self, answers: &mut ImportAnswers, read: ImportProfile) {
        answers.defaults.extend(read.defaults);
        let customers = read.customers.into_iter();
        answers
            .customers
            .extend(customers.map(|(key, values)| CustomerAnswers {
                key,
                name: self.name.clone(),
                values,
            }));
    }
}

fn is_about_one_customer(question: &Question) -> bool {
    question.customer_no.is_some() || question.name.is_some()
}

/// Returns the groups of the form. If there are several customers, or if the file does not name one, the first group
/// asks about all customers at once.
fn group_questions(questions: &[Question]) -> Vec<AnswerGroup> {
    let mut groups = Vec::new();
    if questions.len() > 1 || questions.iter().any(|one| !is_about_one_customer(one)) {
        let mut fields: Vec<String> = Vec::new();
        for field in questions.iter().flat_map(|one| &one.fields) {
            if !fields.contains(field) {
                fields.push(field.clone());
            }
        }
        groups.push(AnswerGroup {
            prefix: "all".to_owned(),
            customer_no: String::new(),
            name: String::new(),
            fields,
        });
    }
    let named = questions.iter().filter(|one| is_about_one_customer(one));
    groups.extend(
        named
            .take(GROUPS_MAX)
            .enumerate()
            .map(|(index, question)| AnswerGroup {
                prefix: format!("q{index}"),
                customer_no: question.customer_no.clone().unwrap_or_default(),
                name: question.name.clone().unwrap_or_default(),
                fields: question.fields.clone(),
            }),
    );
    groups
}

/// Reads the groups that a posted form has.
fn read_groups(values: &FormValues) -> Vec<AnswerGroup> {
    let prefixes = values.checked_values("group").take(GROUPS_MAX + 1);
    let groups = prefixes.map(|prefix| AnswerGroup {
        customer_no: values.text(&format!("{prefix}.customer_no")).to_owned(),
        name: values.text(&format!("{prefix}.customer_name")).to_owned(),
        fields: values
            .text(&format!("{prefix}.fields"))
            .split(',')
            .filter(|field| is_profile_field(field))
            .map(str::to_owned)
            .collect(),
        prefix: prefix.to_owned(),
    });
    groups.collect()
}

/// Returns the label of a field of the profile.
fn field_label(field: &str) -> String {
    match field {
        "no" => "Customer number".to_owned(),
        "tin" => "TIN".to_owned(),
        field => capitalize(&field.replace('_', " ")),
    }
}

/// Reads the answers of a form. Fails with the faults of the form's fields.
fn read_answers(
    groups: &[AnswerGroup],
    values: &FormValues,
    catalog: &Catalog,
) -> Result<ImportAnswers, Faults> {
    let mut faults = Faults::default();
    let mut answers = ImportAnswers::default();
    let mut is_blank = true;
    for group in groups {
        let filled = group.filled_answers(values);
        if filled.is_empty() {
            continue;
        }
        is_blank = false;
        let (body, path) = group.profile_body(filled);
        match reader::read(&body, catalog, import_profile::read) {
            Ok(read) => group.add_to_answers(&mut answers, read.value),
            Err(found) => found
                .iter()
                .for_each(|fault| faults.push(group.form_fault(fault, &path))),
        }
    }
    if is_blank {
        faults.push(Fault::new("", "required", "Answer one question at least."));
    }
    if faults.is_empty() {
        Ok(answers)
    } else {
        Err(faults)
    }
}

/// POST …/import/answers: adds the answers to the import profile, and answers with a part of the page.
async fn save_answers(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let groups = read_groups(&form.0);
    let failure = match read_answers(&groups, &form.0, &state.catalog.get()) {
        Ok(answers) => {
            let count = answers.value_count();
            match session.send(&state, AddImportAnswers(answers)).await {
                Ok(()) => return show(&SavedAnswersPart { count }),
                Err(error) => ApiError::from(error),
            }
        }
        Err(faults) => faults.into(),
    };
    let page = AnswersForm {
        frame: Frame::for_account(&session, "Import"),
        base: base_path(&session),
        unlisted_customers: 0,
        groups,
        form: FormState::from_refusal(failure, form.0)?,
    };
    show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(no: &str, name: &str, fields: &[&str]) -> Question {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Question {
            customer_no: text(no),
            name: text(name),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        }
    }

    #[test]
    fn one_question_has_no_group_for_all_customers() {
        for (questions, titles) in [
            (vec![], vec![]),
            (vec![question("C1", "Obi", &["email"])], vec!["Obi (C1)"]),
            (
                vec![question("", "", &["email"])],
                vec!["Every customer that lacks it"],
            ),
            (
                vec![
                    question("", "Obi", &["email"]),
                    question("C2", "", &["email", "tin"]),
                ],
                vec!["Every customer that lacks it", "Obi", "C2"],
            ),
        ] {
            let groups = group_questions(&questions);
            let found: Vec<_> = groups.iter().map(AnswerGroup::title).collect();
            assert_eq!(found, titles, "{questions:?}");
        }
        let many: Vec<_> = (0..50)
            .map(|index| question(&format!("C{index}"), "", &["email"]))
            .collect();
        assert_eq!(group_questions(&many).len(), GROUPS_MAX + 1);
    }

    #[test]
    fn an_answer_goes_to_the_entry_that_the_import_reads_and_a_fault_to_its_field() {
        let stored = json!({
            "defaults": {}, "customers": { "Obi": { "tin": "T-1" } }, "columns": {}, "units": {},
        });
        let customer = [
            ("group", "q0"),
            ("q0.customer_no", "C1"),
            ("q0.customer_name", "Obi"),
            ("q0.fields", "email,quantity"),
        ];
        let all = [("group", "all"), ("all.fields", "email")];
        for (group, typed, expected) in [
            (
                &customer[..],
                ("q0.email", "a@b.example"),
                Ok((json!({}), json!({ "tin": "T-1", "email": "a@b.example" }))),
            ),
            (
                &all[..],
                ("all.email", "a@b.example"),
                Ok((json!({ "email": "a@b.example" }), Value::Null)),
            ),
            (&customer[..], ("q0.email", "odd"), Err("q0.email")),
            (&customer[..], ("q0.quantity", "5"), Err("")),
            (&all[..], ("all.email", " "), Err("")),
        ] {
            let values: FormValues = group.iter().copied().chain([typed]).collect();
            let mut profile: ImportProfile = serde_json::from_value(stored.clone()).unwrap();
            let groups = read_groups(&values);
            let read = read_answers(&groups, &values, &Catalog::default());
            match expected {
                Ok((defaults, entry)) => {
                    let answers = read.unwrap();
                    assert_eq!(answers.value_count(), 1, "{typed:?}");
                    answers.add_to(&mut profile);
                    assert_eq!(json!(profile.defaults), defaults, "{typed:?}");
                    assert_eq!(json!(profile.customers.get("C1")), entry, "{typed:?}");
                }
                Err(path) => {
                    let faults = read.unwrap_err();
                    let paths: Vec<_> = faults.iter().map(|fault| &*fault.path).collect();
                    assert_eq!(paths, [path], "{typed:?}");
                }
            }
        }
    }
}
