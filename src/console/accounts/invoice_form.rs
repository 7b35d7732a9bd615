//! The form about an invoice as a page shows it, for a new invoice, a credit note, a change and a correction: its fields
//! with the values to choose from, its stored customer, and its faults.

use std::collections::BTreeSet;

use crate::console::accounts::invoice_fields::{
    CUSTOMER_FIELDS, EditField, FIND_CUSTOMER, FOCUS, FieldGroup, FormLines, LINES_MAX,
    SHOWN_CUSTOMER, field_groups,
};
use crate::console::accounts::invoice_values::{
    customer_values, fill_in_customer, rearrange_lines, remove_customer_data,
};
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues, unlink_unshown_fields};
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{Category, DocumentKind, ItemType};
use crate::domain::kernel::ids::CustomerId;
use crate::domain::party::{Customer, CustomerDetails};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::customers;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageFields, PageStart,
};

/// The ids of the lists of suggested values.
const UNITS: &str = "units";
const COUNTRIES: &str = "countries";
const CUSTOMERS: &str = "customers";
/// The reasons why the button that fills in the customer filled in nothing.
const NO_NUMBER: &str = "Type the number of a stored customer first.";
const UNKNOWN_NUMBER: &str = "No stored customer has this number, so nothing was filled in.";
/// The maximum number of stored customers that the form suggests, in the order of their names.
const CUSTOMERS_SUGGESTED_MAX: u64 = 200;
/// The number of the account's newest invoices whose currency, number and units are suggested for the next one.
const NEWEST_MAX: u64 = 10;
/// The units in common use, by their codes of UN/ECE Recommendation 20. The authority lists some 1,800, which would
/// make the page several times as large; the others are typed.
const COMMON_UNITS: [&str; 53] = [
    "EA", "C62", "H87", "NAR", "PR", "SET", "DZN", "GRO", "CEN", "MIL", "NMP", "E48", "E51", "LS",
    "D63", "P1", "KGM", "GRM", "MGM", "TNE", "LBR", "ONZ", "LTR", "MLT", "HLT", "GLL", "GLI",
    "BLL", "MTR", "CMT", "MMT", "KMT", "FOT", "INH", "YRD", "MTK", "FTK", "ACR", "MTQ", "FTQ",
    "MIN", "HUR", "LH", "DAY", "E49", "WEE", "MON", "QAN", "ANN", "KWH", "MWH", "KWT", "E34",
];

/// Values that the page suggests for a field, each with its label.
pub(super) struct SuggestedValues {
    pub(super) id: &'static str,
    pub(super) values: Vec<(String, String)>,
}

/// The page of a customer, and the customer's number and name.
pub(super) struct CustomerLink {
    pub(super) address: String,
    pub(super) no: String,
    pub(super) name: String,
}

pub(super) struct InvoiceForm {
    pub(super) groups: Vec<FieldGroup>,
    pub(super) suggested: Vec<SuggestedValues>,
    pub(super) state: FormState,
    pub(super) line_count: usize,
    /// True if the form can have another line.
    pub(super) has_room: bool,
    /// The address to which the buttons are sent that only change the form.
    pub(super) lines_address: String,
    /// The stored customer with the number in the form.
    pub(super) customer: Option<CustomerLink>,
    /// Why the button that fills in the customer filled in nothing; an empty text if it was not pressed or did.
    pub(super) customer_notice: &'static str,
}

impl InvoiceForm {
    pub(super) async fn load(
        state: &ApiState,
        session: &AccountSession,
        lines: FormLines,
        form: FormState,
        lines_address: String,
    ) -> Result<Self, ApiError> {
        let catalog = state.catalog.get();
        let customer = find_customer(state, session, form.value("customer.no")).await?;
        let stored = customer.as_ref().map(|found| &found.details);
        let stored = stored.map(customer_values).unwrap_or_default();
        let customer_notice = if customer.is_some() || form.value(FIND_CUSTOMER).is_empty() {
            ""
        } else if form.value("customer.no").is_empty() {
            NO_NUMBER
        } else {
            UNKNOWN_NUMBER
        };
        let mut groups = field_groups(lines);
        for field in groups.iter_mut().flat_map(|group| &mut group.fields) {
            let current = form.value(&field.name);
            add_choices(field, current, &catalog);
            field.is_fixed = is_kept_by_customer(&field.name, &form, &stored);
            field.has_focus = form.value(FOCUS) == field.name;
        }
        Ok(Self {
            groups,
            suggested: suggest_values(state, session, &catalog).await?,
            state: form,
            line_count: lines.all,
            has_room: lines.all < LINES_MAX,
            lines_address,
            customer_notice,
            customer: customer.map(|found| CustomerLink {
                address: format!("{}/customers/{}", base_path(session), found.id),
                no: found.details.no,
                name: found.details.name,
            }),
        })
    }

    /// Makes these fields unchangeable. The current value is then the only one to choose from.
    #[must_use]
    pub(super) fn with_fixed_fields(mut self, names: &[&str]) -> Self {
        let fields = self.groups.iter_mut().flat_map(|group| &mut group.fields);
        for field in fields.filter(|field| names.contains(&field.name.as_str())) {
            field.is_fixed = true;
            let current = self.state.value(&field.name);
            field.options.retain(|(value, _)| value == current);
        }
        self
    }

    /// Returns each fault as its field and its sentence, for the summary at the top of the page.
    pub(super) fn fault_summary(&self) -> Vec<(String, String)> {
        let is_shown = |name: &str| {
            let mut fields = self.groups.iter().flat_map(|group| &group.fields);
            fields.any(|field| field.name == name)
        };
        unlink_unshown_fields(self.state.summary().into_iter(), is_shown)
    }
}

/// Refuses an invoice that the form cannot show.
pub(super) fn check_showable(invoice: &Invoice) -> Result<(), ApiError> {
    if has_form(invoice) {
        return Ok(());
    }
    let message = "This invoice was created as a full document, or has many lines. Correct it in the system that created it.";
    Err(ApiError::new(ErrorCode::InvalidTransition, message))
}

/// True for an invoice that the form can show.
pub(super) fn has_form(invoice: &Invoice) -> bool {
    !invoice.is_full() && invoice.lines.len() <= LINES_MAX
}

/// Returns the values of a form after a button that only changes the form. `stored` is the number of lines of the
/// stored invoice. If the button finds no customer, the values still have it, so that the page says so.
pub(super) async fn apply_form_button(
    state: &ApiState,
    session: &AccountSession,
    stored: usize,
    values: &FormValues,
) -> Result<FormValues, ApiError> {
    let lines = FormLines::from_form(stored, values);
    let remaining_values = remove_former_customer(state, session, values.clone()).await?;
    let changed = rearrange_lines(&remaining_values, lines);
    if values.text(FIND_CUSTOMER).is_empty() {
        return Ok(changed);
    }
    let found = find_customer(state, session, values.text("customer.no")).await?;
    let found = found.map(|customer| customer_values(&customer.details));
    Ok(changed.with_fields(found.unwrap_or_else(|| FormValues::from([(FIND_CUSTOMER, "yes")]))))
}

/// Returns the values with the data of the stored customer whose number is in the form, where the form has none.
pub(super) async fn fill_in_stored_customer(
    state: &ApiState,
    session: &AccountSession,
    values: FormValues,
) -> Result<FormValues, ApiError> {
    let values = remove_former_customer(state, session, values).await?;
    let found = find_customer(state, session, values.text("customer.no")).await?;
    Ok(match found {
        Some(customer) => fill_in_customer(values, &customer.details),
        None => values,
    })
}

/// Returns the values without the stored data of the customer that the form showed before its number was changed.
/// Otherwise the customer with the new number would get data that it lacks, such as a TIN, from the former customer.
pub(super) async fn remove_former_customer(
    state: &ApiState,
    session: &AccountSession,
    values: FormValues,
) -> Result<FormValues, ApiError> {
    let former = values.text(SHOWN_CUSTOMER);
    if former == values.text("customer.no") {
        return Ok(values);
    }
    let found = find_customer(state, session, former).await?;
    Ok(match found {
        Some(customer) => remove_customer_data(values, &customer.details),
        None => values,
    })
}

/// Returns a sentence about the data of the customer that were typed, but not taken, because the customer is stored
/// with other data; an empty text if there are none.
pub(super) async fn kept_data_sentence(
    state: &ApiState,
    session: &AccountSession,
    customer: CustomerId,
    typed: &FormValues,
) -> Result<String, ApiError> {
    let reader = state.store.reader();
    let found = customers::find_owned_by_id(reader, session.taxpayer, customer).await?;
    let kept = found.map(|customer| kept_labels(&customer.details, typed));
    let kept = kept.unwrap_or_default();
    Ok(if kept.is_empty() {
        String::new()
    } else {
        format!("The customer's stored data was kept: {}.", kept.join(", "))
    })
}

/// Returns the labels of the data of a stored customer that differ from what was typed.
fn kept_labels(details: &CustomerDetails, typed: &FormValues) -> Vec<String> {
    let stored = customer_values(details);
    // The number says which customer it is. A country may be typed by its name, and is stored as its code.
    let kept_fields = CUSTOMER_FIELDS
        .iter()
        .filter(|(name, _)| !["no", "address_country"].contains(name));
    let differing = kept_fields.filter(|(name, _)| {
        let path = format!("customer.{name}");
        let text = typed.text(&path);
        !text.is_empty() && !text.eq_ignore_ascii_case(stored.text(&path))
    });
    let labels = differing.map(|(_, label)| {
        let short = label.trim_start_matches("Customer's ");
        short.trim_start_matches("Customer ").to_owned()
    });
    labels.collect()
}

async fn find_customer(
    state: &ApiState,
    session: &AccountSession,
    no: &str,
) -> Result<Option<Customer>, ApiError> {
    if no.is_empty() {
        return Ok(None);
    }
    let reader = state.store.reader();
    Ok(customers::find_owned_by_no(reader, session.taxpayer, no).await?)
}

/// True for data that a stored customer keeps, so that changing it in the form would have no effect. A country is not
/// kept if the authority does not know it.
fn is_kept_by_customer(name: &str, form: &FormState, stored: &FormValues) -> bool {
    let kept = stored.text(name);
    let is_country = name == "customer.address_country";
    !kept.is_empty() && !is_country && kept == form.value(name) && form.fault(name).is_none()
}

async fn suggest_values(
    state: &ApiState,
    session: &AccountSession,
    catalog: &Catalog,
) -> Result<Vec<SuggestedValues>, ApiError> {
    let reader = state.store.reader();
    let stored_customers =
        customers::first_owned_by(reader, session.taxpayer, CUSTOMERS_SUGGESTED_MAX).await?;
    let customers = stored_customers
        .into_iter()
        .map(|one| (one.details.no, one.details.name));
    let newest = load_newest(state, session, None).await?;
    let lines = newest.iter().flat_map(|invoice| &invoice.lines);
    let account_units = lines.map(|line| line.price_unit.as_str()).collect();
    Ok(vec![
        SuggestedValues {
            id: UNITS,
            values: suggest_units(&account_units, catalog),
        },
        SuggestedValues {
            id: COUNTRIES,
            values: owned_pairs(catalog.codes_with_names(ReferenceList::Countries)),
        },
        SuggestedValues {
            id: CUSTOMERS,
            values: customers.collect(),
        },
    ])
}

/// Loads the newest invoices of the account, or those to the customer with this number. Those with many lines come
/// without them.
pub(super) async fn load_newest(
    state: &ApiState,
    session: &AccountSession,
    customer_no: Option<&str>,
) -> Result<Vec<Invoice>, ApiError> {
    let list = InvoiceList {
        taxpayer: session.taxpayer,
        filters: InvoiceFilter {
            customer_no: customer_no.map(str::to_owned),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::NEWEST_FIRST,
    };
    let part = PageBounds {
        start: PageStart::At(0),
        limit: NEWEST_MAX,
    };
    let page = list
        .page_with_known_total(&state.store, part, u64::MAX, PageFields::Shown)
        .await?;
    Ok(page.invoices)
}

/// Returns the units in `account_units`, followed by the common ones, each with its name. Leaves out units that the
/// authority does not list.
fn suggest_units(account_units: &BTreeSet<&str>, catalog: &Catalog) -> Vec<(String, String)> {
    let common = COMMON_UNITS
        .into_iter()
        .filter(|code| !account_units.contains(code));
    let codes = account_units.iter().copied().chain(common);
    let list = ReferenceList::QuantityCodes;
    let listed = codes.filter(|code| catalog.has(list, code) == Some(true));
    let named = listed.map(|code| (code, catalog.name(list, code).unwrap_or(code)));
    owned_pairs(named.collect())
}

fn owned_pairs(pairs: Vec<(&str, &str)>) -> Vec<(String, String)> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(value, label)| (value.to_owned(), label.to_owned()))
        .collect()
}

/// Adds the values to choose from, or the list of suggested values. A current value that is not among them is added.
fn add_choices(field: &mut EditField, current: &str, catalog: &Catalog) {
    let name = field.name.as_str();
    let last = name.rsplit('.').next().unwrap_or(name);
    field.list = match last {
        "price_unit" => UNITS,
        "address_country" => COUNTRIES,
        _ if name == "customer.no" => CUSTOMERS,
        _ => "",
    };
    field.options = options(last, catalog);
    let is_listed = field.options.iter().any(|(value, _)| value == current);
    if !field.options.is_empty() && !current.is_empty() && !is_listed {
        let named = catalog.name(ReferenceList::InvoiceTypes, current);
        let label = named.filter(|_| last == "invoice_type_code");
        let label = label.unwrap_or(current).to_owned();
        field.options.insert(0, (current.to_owned(), label));
    }
}

/// Returns the values of which one is chosen for a field; none for a field with an input, or if the authority's list has
/// not been fetched yet.
fn options(name: &str, catalog: &Catalog) -> Vec<(String, String)> {
    let word_as_label = |word: &str| (word.to_owned(), word.to_owned());
    match name {
        "invoice_type_code" => {
            let listed = catalog.codes_with_names(ReferenceList::InvoiceTypes);
            let invoice_types = listed
                .into_iter()
                .filter(|(code, _)| DocumentKind::from_type_code(code) == DocumentKind::Invoice);
            owned_pairs(invoice_types.collect())
        }
        "invoice_category" => Category::ALL
            .iter()
            .map(|one| word_as_label(one.as_str()))
            .collect(),
        "item_type" => ItemType::ALL
            .iter()
            .map(|one| word_as_label(one.as_str()))
            .collect(),
        "currency" => {
            let listed = catalog.codes_with_names(ReferenceList::Currencies);
            let labelled = listed.into_iter().map(|(code, name)| {
                let label = format!("{code} {name}");
                (code.to_owned(), label)
            });
            labelled.collect()
        }
        "tax_category" => {
            let listed = catalog.tax_percents_by_category().into_iter();
            let labelled = listed.map(|(code, percent)| {
                let label = format!("{code}, {percent} %");
                (code.to_owned(), label)
            });
            labelled.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::party::Address;
    use crate::http::forms::testing::catalog;

    #[test]
    fn a_field_offers_what_its_list_has_and_the_value_that_it_has_already() {
        for (name, current, offered, list) in [
            ("invoice_type_code", "381", vec!["381", "384"], ""),
            ("invoice_type_code", "380", vec!["380", "381", "384"], ""),
            ("invoice_category", "", vec!["B2B", "B2C", "B2G"], ""),
            (
                "lines.3.item_type",
                "SERVICE",
                vec!["PRODUCT", "SERVICE"],
                "",
            ),
            ("lines.3.price_unit", "EA", vec![], UNITS),
            ("customer.address_country", "", vec![], COUNTRIES),
            ("customer.no", "", vec![], CUSTOMERS),
            ("note", "", vec![], ""),
        ] {
            let mut field = EditField {
                name: name.to_owned(),
                ..EditField::default()
            };
            add_choices(&mut field, current, &catalog());
            let values = field.options.iter().map(|(value, _)| value.as_str());
            assert_eq!(values.collect::<Vec<_>>(), offered, "{name}");
            assert_eq!(field.list, list, "{name}");
        }
    }

    #[test]
    fn the_units_of_the_account_are_suggested_before_the_common_ones() {
        for (account_units, suggested) in [
            (vec![], vec!["EA", "KGM"]),
            (vec!["KGM"], vec!["KGM", "EA"]),
            // The authority does not list this unit any more.
            (vec!["KGM", "XX"], vec!["KGM", "EA"]),
        ] {
            let units = suggest_units(&account_units.into_iter().collect(), &catalog());
            let codes = units.iter().map(|(code, _)| code.as_str());
            assert_eq!(codes.collect::<Vec<_>>(), suggested);
        }
    }

    #[test]
    fn the_data_that_a_stored_customer_keeps_is_named() {
        let details = CustomerDetails {
            no: "C-1".to_owned(),
            name: "Shop".to_owned(),
            email: "shop@example.com".to_owned(),
            tin: None,
            business_description: None,
            address: Address {
                city: "Lagos".to_owned(),
                ..Address::default()
            },
            telephone: None,
        };
        for (typed, kept) in [
            (("customer.name", "Shop"), ""),
            (("customer.name", ""), ""),
            (("customer.email", "SHOP@example.com"), ""),
            (("customer.name", "Store"), "name"),
            (("customer.address_city", "Abuja"), "city"),
            (("customer.address_country", "Ghana"), ""),
        ] {
            let labels = kept_labels(&details, &FormValues::from([typed]));
            assert_eq!(labels.join(", "), kept, "{typed:?}");
        }
    }
}
