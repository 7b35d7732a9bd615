//! The import profile: answers that a taxpayer gives in advance, because its files lack these values. A value in the
//! file wins over the profile's entry for the customer, which wins over the defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::import::source::ImportForm;
use crate::domain::invoice::stored_document::invoice_type_code_for;
use crate::domain::reference::catalog::Catalog;

/// The largest profile, in bytes of its JSON.
pub const PROFILE_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportProfile {
    /// Default values, by the name of the field.
    pub defaults: BTreeMap<String, String>,
    /// Values for one customer, by its number, TIN or name. Each entry maps the names of fields to values.
    pub customers: BTreeMap<String, BTreeMap<String, String>>,
    /// The names of our fields, by the column headers of the taxpayer's files.
    pub columns: BTreeMap<String, String>,
    /// Our units, by the units of the taxpayer's files.
    pub units: BTreeMap<String, String>,
}

/// A field whose value a profile may give, with its paths in the bodies of Create Standard and Create Full.
struct ProfileField {
    name: &'static str,
    standard: &'static [&'static str],
    /// Empty if Create Full has no such field.
    full: &'static [&'static str],
}

const fn profile_field(
    name: &'static str,
    standard: &'static [&'static str],
    full: &'static [&'static str],
) -> ProfileField {
    ProfileField {
        name,
        standard,
        full,
    }
}

const TYPE_CODE_FIELD: &str = "invoice_type_code";

const HEADER_FIELDS: [ProfileField; 13] = [
    profile_field(
        "no",
        &["customer", "no"],
        &["accounting_customer_party", "customer_no"],
    ),
    profile_field(
        "name",
        &["customer", "name"],
        &["accounting_customer_party", "party_name"],
    ),
    profile_field(
        "email",
        &["customer", "email"],
        &["accounting_customer_party", "email"],
    ),
    profile_field(
        "tin",
        &["customer", "tin"],
        &["accounting_customer_party", "tin"],
    ),
    profile_field(
        "business_description",
        &["customer", "business_description"],
        &["accounting_customer_party", "business_description"],
    ),
    profile_field(
        "address_street_name",
        &["customer", "address_street_name"],
        &["accounting_customer_party", "postal_address", "street_name"],
    ),
    profile_field(
        "address_city",
        &["customer", "address_city"],
        &["accounting_customer_party", "postal_address", "city_name"],
    ),
    profile_field("address_state", &["customer", "address_state"], &[]),
    profile_field(
        "address_postal_code",
        &["customer", "address_postal_code"],
        &["accounting_customer_party", "postal_address", "postal_zone"],
    ),
    profile_field(
        "address_country",
        &["customer", "address_country"],
        &["accounting_customer_party", "postal_address", "country"],
    ),
    profile_field(
        "invoice_category",
        &["invoice_category"],
        &["invoice_category"],
    ),
    profile_field(
        TYPE_CODE_FIELD,
        &["invoice_type_code"],
        &["invoice_type_code"],
    ),
    profile_field("currency", &["currency"], &["document_currency_code"]),
];

const LINE_FIELDS: [ProfileField; 5] = [
    profile_field("item_type", &["item_type"], &["item", "type"]),
    profile_field("tax_category", &["tax_category"], &["tax_category"]),
    profile_field("price_unit", &["price_unit"], &["price", "price_unit"]),
    profile_field(
        "product_category",
        &["product_category"],
        &["product_category"],
    ),
    profile_field(
        "service_category",
        &["service_category"],
        &["service_category"],
    ),
];

impl ProfileField {
    fn path(&self, form: ImportForm) -> &'static [&'static str] {
        match form {
            ImportForm::Standard => self.standard,
            ImportForm::Full => self.full,
        }
    }
}

/// True if a profile may give a value for a field with this name.
pub fn is_profile_field(name: &str) -> bool {
    HEADER_FIELDS
        .iter()
        .chain(&LINE_FIELDS)
        .any(|field| field.name == name)
}

/// Returns the names of the fields for which a profile may give a value, separated by commas.
pub fn profile_field_names() -> String {
    let names = HEADER_FIELDS.iter().chain(&LINE_FIELDS);
    names.map(|field| field.name).collect::<Vec<_>>().join(", ")
}

/// Returns the name under which a profile can give a value for the field at this path of a body; `None` if it cannot.
pub fn profile_field_name(form: ImportForm, path: &str) -> Option<&'static str> {
    let steps: Vec<_> = path.split('.').collect();
    let (fields, steps) = match steps.split_first() {
        Some((list, [_, rest @ ..])) if *list == form.lines_field() => (&LINE_FIELDS[..], rest),
        _ => (&HEADER_FIELDS[..], &steps[..]),
    };
    let field = fields
        .iter()
        .find(|field| !steps.is_empty() && field.path(form) == steps);
    field.map(|field| field.name)
}

/// The customer of a body, as the file identifies it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CustomerIdentity {
    pub no: Option<String>,
    pub tin: Option<String>,
    pub name: Option<String>,
}

impl CustomerIdentity {
    pub fn from_body(form: ImportForm, body: &Map<String, Value>) -> Self {
        let text = |name: &str| {
            let field = HEADER_FIELDS.iter().find(|field| field.name == name)?;
            text_at(body, field.path(form)).map(str::to_owned)
        };
        Self {
            no: text("no"),
            tin: text("tin"),
            name: text("name"),
        }
    }
}

impl ImportProfile {
    /// Fills in fields that the body lacks, and maps its units. Returns a warning for each value that came from the
    /// profile.
    pub fn complete_body(
        &self,
        form: ImportForm,
        body: &mut Map<String, Value>,
        catalog: &Catalog,
    ) -> Vec<String> {
        let customer = CustomerIdentity::from_body(form, body);
        let entries = self.customer_entries(&customer);
        let answer = |name: &str| {
            let of_customer = entries.iter().find_map(|(key, values)| {
                Some((values.get(name)?.clone(), format!("customer {key}")))
            });
            of_customer.or_else(|| {
                let value = self.defaults.get(name)?;
                Some((value.clone(), "defaults".to_owned()))
            })
        };
        let mut warnings = Vec::new();
        for field in HEADER_FIELDS
            .iter()
            .filter(|field| !field.path(form).is_empty())
        {
            let path = field.path(form);
            if text_at(body, path).is_none()
                && is_settable(body, path)
                && !is_type_code_with_type_name(field, body, catalog)
                && let Some((value, from)) = answer(field.name)
            {
                set_at(body, path, value);
                warnings.push(format!(
                    "{} came from the profile ({from}).",
                    path.join(".")
                ));
            }
        }
        let lines = body
            .get_mut(form.lines_field())
            .and_then(Value::as_array_mut);
        let mut lines: Vec<_> = lines
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
            .collect();
        warnings.extend(self.map_units(form, &mut lines));
        for field in &LINE_FIELDS {
            if let Some((value, from)) = answer(field.name) {
                let count = fill_lines(form, field, &value, &mut lines);
                let name = field.path(form).join(".");
                warnings.extend(
                    (count > 0).then(|| {
                        format!("{name} of {count} lines came from the profile ({from}).")
                    }),
                );
            }
        }
        warnings
    }

    /// Returns the profile's entries for a customer, with their keys: those for its number and its TIN or, if there are
    /// none, the one for its name. Two customers may have the same name, so the entry for a name does not supplement
    /// the other entries.
    fn customer_entries<'a>(
        &'a self,
        customer: &'a CustomerIdentity,
    ) -> Vec<(&'a String, &'a BTreeMap<String, String>)> {
        let entry = |key: &'a String| Some((key, self.customers.get(key)?));
        let keys = [&customer.no, &customer.tin];
        let mut entries: Vec<_> = keys.into_iter().flatten().filter_map(entry).collect();
        if entries.is_empty() {
            entries.extend(customer.name.as_ref().and_then(entry));
        }
        entries
    }

    fn map_units(&self, form: ImportForm, lines: &mut [&mut Map<String, Value>]) -> Vec<String> {
        let path: &[&str] = match form {
            ImportForm::Standard => &["price_unit"],
            ImportForm::Full => &["price", "price_unit"],
        };
        let mut mapped = BTreeMap::new();
        for line in lines {
            let unit = text_at(line, path).map(str::to_owned);
            if let Some((unit, wanted)) =
                unit.and_then(|unit| Some((unit.clone(), self.units.get(&unit)?)))
            {
                set_at(line, path, wanted.clone());
                mapped.insert(unit, wanted);
            }
        }
        mapped
            .into_iter()
            .map(|(unit, wanted)| format!("The unit {unit} became {wanted}, by the profile."))
            .collect()
    }
}

/// True if the field is the type code and the file states the type as a name. The profile then does not set the code,
/// because a document with the type `Credit Note` must not get the code of an invoice.
fn is_type_code_with_type_name(
    field: &ProfileField,
    body: &Map<String, Value>,
    catalog: &Catalog,
) -> bool {
    field.name == TYPE_CODE_FIELD
        && text_at(body, &["invoice_type"])
            .is_some_and(|name| invoice_type_code_for(name, catalog).is_some())
}

/// Sets a field in every line that lacks it, and returns the number of these lines. A product category is set only in
/// lines of products, a service category only in lines of services.
fn fill_lines(
    form: ImportForm,
    field: &ProfileField,
    value: &str,
    lines: &mut [&mut Map<String, Value>],
) -> usize {
    let wanted_kind = match field.name {
        "product_category" => Some("PRODUCT"),
        "service_category" => Some("SERVICE"),
        _ => None,
    };
    let kind_path = LINE_FIELDS[0].path(form);
    let path = field.path(form);
    let mut count = 0;
    for line in lines {
        let fits = wanted_kind.is_none_or(|kind| {
            text_at(line, kind_path).is_some_and(|text| text.eq_ignore_ascii_case(kind))
        });
        if fits && text_at(line, path).is_none() && is_settable(line, path) {
            set_at(line, path, value.to_owned());
            count += 1;
        }
    }
    count
}

/// Returns the text at a path; `None` if it is absent, blank or no text.
pub(super) fn text_at<'b>(body: &'b Map<String, Value>, path: &[&str]) -> Option<&'b str> {
    let (first, rest) = path.split_first()?;
    let value = rest
        .iter()
        .try_fold(body.get(*first)?, |value, step| value.get(step))?;
    value
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// True if the path has no value or a blank text, and a value can be set there: each member above it is an object or
/// absent.
fn is_settable(body: &Map<String, Value>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    match body.get(*first) {
        None | Some(Value::Null) => true,
        Some(Value::Object(inner)) if !rest.is_empty() => is_settable(inner, rest),
        Some(Value::String(text)) => rest.is_empty() && text.trim().is_empty(),
        Some(_) => false,
    }
}

pub(super) fn set_at(body: &mut Map<String, Value>, path: &[&str], value: String) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        body.insert((*first).to_owned(), Value::String(value));
        return;
    }
    let inner = body.entry(*first).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        set_at(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile() -> ImportProfile {
        let value = json!({
            "defaults": { "email": "all@x.example", "address_state": "Lagos", "tax_category": "STANDARD_VAT",
                          "product_category": "1006.30" },
            "customers": { "C-1": { "email": "one@x.example" }, "Mills": { "no": "C-9", "tin": "T-9" } },
            "columns": {}, "units": { "XPP": "EA" },
        });
        serde_json::from_value(value).unwrap()
    }

    fn completed(form: ImportForm, body: Value) -> (Value, Vec<String>) {
        let Value::Object(mut body) = body else {
            panic!("no object")
        };
        let warnings = profile().complete_body(form, &mut body, &Catalog::default());
        (Value::Object(body), warnings)
    }

    #[test]
    fn the_file_wins_over_the_customer_and_that_over_the_defaults() {
        let (body, warnings) = completed(
            ImportForm::Standard,
            json!({
                "customer": { "no": "C-1", "address_state": "Kano" },
                "invoice_lines": [{ "price_unit": "XPP", "item_type": "service" }, { "item_type": "PRODUCT", "tax_category": " " }],
            }),
        );
        assert_eq!(
            body,
            json!({
                "customer": { "no": "C-1", "address_state": "Kano", "email": "one@x.example" },
                "invoice_lines": [
                    { "price_unit": "EA", "item_type": "service", "tax_category": "STANDARD_VAT" },
                    { "item_type": "PRODUCT", "tax_category": "STANDARD_VAT", "product_category": "1006.30" },
                ],
            })
        );
        assert_eq!(
            warnings,
            [
                "customer.email came from the profile (customer C-1).",
                "The unit XPP became EA, by the profile.",
                "tax_category of 2 lines came from the profile (defaults).",
                "product_category of 1 lines came from the profile (defaults).",
            ]
        );
    }

    #[test]
    fn the_entry_of_a_number_hides_no_value_of_the_entry_of_the_tin() {
        let email = |text: &str| BTreeMap::from([("email".to_owned(), text.to_owned())]);
        let state = |text: &str| BTreeMap::from([("address_state".to_owned(), text.to_owned())]);
        let customers = [
            ("C-1", email("no@x.example")),
            ("C-2", state("Oyo")),
            ("T-1", email("tin@x.example")),
            ("Mills", email("name@x.example")),
        ];
        let profile = ImportProfile {
            customers: customers
                .map(|(key, values)| (key.to_owned(), values))
                .into(),
            ..ImportProfile::default()
        };
        for (customer, expected) in [
            (json!({ "no": "C-1", "tin": "T-1" }), Some("no@x.example")),
            (json!({ "no": "C-2", "tin": "T-1" }), Some("tin@x.example")),
            (json!({ "no": "C-3", "tin": "T-1" }), Some("tin@x.example")),
            (json!({ "no": "C-2", "name": "Mills" }), None),
            (
                json!({ "no": "C-3", "name": "Mills" }),
                Some("name@x.example"),
            ),
        ] {
            let mut body = Map::from_iter([("customer".to_owned(), customer.clone())]);
            profile.complete_body(ImportForm::Standard, &mut body, &Catalog::default());
            let found = body["customer"].get("email").and_then(Value::as_str);
            assert_eq!(found, expected, "{customer}");
        }
    }

    #[test]
    fn a_type_that_the_file_names_gets_no_code_from_the_profile() {
        for (name, code) in [
            (json!(null), Some("381")),
            (json!(" "), Some("381")),
            (json!("Rent of August"), Some("381")),
            (json!("CREDIT_NOTE"), None),
            (json!(" credit note "), None),
            (json!("Tax Invoice"), None),
        ] {
            let profile = ImportProfile {
                defaults: BTreeMap::from([(TYPE_CODE_FIELD.to_owned(), "381".to_owned())]),
                ..ImportProfile::default()
            };
            let mut body = Map::from_iter([("invoice_type".to_owned(), name.clone())]);
            let warnings =
                profile.complete_body(ImportForm::Standard, &mut body, &Catalog::default());
            let found = body.get(TYPE_CODE_FIELD).and_then(Value::as_str);
            assert_eq!(found, code, "{name}");
            assert_eq!(warnings.len(), usize::from(code.is_some()), "{name}");
        }
    }

    #[test]
    fn a_customer_is_found_by_its_name_in_the_full_form_too() {
        let (body, _) = completed(
            ImportForm::Full,
            json!({ "accounting_customer_party": { "party_name": "Mills", "email": 7 }, "invoice_line": 1 }),
        );
        assert_eq!(
            body,
            json!({
                "accounting_customer_party": { "party_name": "Mills", "email": 7, "customer_no": "C-9", "tin": "T-9" },
                "invoice_line": 1,
            })
        );
    }

    #[test]
    fn only_fields_of_the_profile_are_answers() {
        for (form, path, name) in [
            (ImportForm::Standard, "customer.email", Some("email")),
            (
                ImportForm::Standard,
                "invoice_lines.3.price_unit",
                Some("price_unit"),
            ),
            (
                ImportForm::Full,
                "invoice_line.3.price.price_unit",
                Some("price_unit"),
            ),
            (
                ImportForm::Full,
                "accounting_customer_party.postal_address.street_name",
                Some("address_street_name"),
            ),
            (ImportForm::Standard, "invoice_lines.3.quantity", None),
            (ImportForm::Standard, "invoice_lines", None),
            (ImportForm::Standard, "due_date", None),
        ] {
            assert_eq!(profile_field_name(form, path), name, "{path}");
        }
        assert!(is_profile_field("tax_category") && !is_profile_field("quantity"));
    }
}
