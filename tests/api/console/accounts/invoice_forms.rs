//! Invoices that are made by hand: on an empty form, like another invoice, and for a stored customer.

use serde_json::json;
use testkit::documents::{self, invoice_no, number};
use testkit::edit::with;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, post_seen, seen};
use crate::support::world::World;

const FORM: &str = "/invoices/new";
const LINES: &str = "/invoices/new/lines";

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// The fields of a filled form, for a business with this number.
fn filled<'a>(invoice_no: &'a str, customer_no: &'a str) -> Fields<'a> {
    vec![
        ("invoice_no", invoice_no),
        ("invoice_type_code", "381"),
        ("invoice_category", "B2B"),
        ("invoice_date", "2026-01-15"),
        ("due_date", "2026-02-15"),
        ("currency", "NGN"),
        ("note", "As agreed"),
        ("customer.no", customer_no),
        ("customer.name", "Corner Shop Ltd"),
        ("customer.email", "corner@shop.example"),
        ("customer.tin", "55555555-0001"),
        ("customer.business_description", "Sale of household goods"),
        ("customer.address_street_name", "5 Broad Street"),
        ("customer.address_city", "Abuja"),
        ("customer.address_state", "FCT"),
        ("customer.address_postal_code", "900001"),
        ("customer.address_country", "NG"),
        ("line_count", "1"),
        ("lines.0.item_name", "Laptop"),
        ("lines.0.item_no", "LAP-1"),
        ("lines.0.item_type", "PRODUCT"),
        ("lines.0.product_category", "8471.30"),
        ("lines.0.quantity", "2"),
        ("lines.0.price_unit", "EA"),
        ("lines.0.unit_price", "1,500.50"),
        ("lines.0.tax_category", "STANDARD_VAT"),
        ("lines.0.description", "Light and fast"),
    ]
}

/// The filled form with other values of some fields.
fn changed<'a>(mut fields: Fields<'a>, others: &[(&'a str, &'a str)]) -> Fields<'a> {
    fields.retain(|(name, _)| others.iter().all(|(other, _)| other != name));
    fields.extend(others);
    fields
}

/// Returns the path of the invoice to which the answer leads, below that of the account.
fn invoice_path(account: &Account, location: &str) -> String {
    location.strip_prefix(&account.path("")).unwrap().to_owned()
}

#[each_database]
async fn an_invoice_is_made_by_hand_once(world: &World) {
    let account = Account::new(world).await;
    let empty = account.page(FORM).await;
    let parts = [
        "New invoice",
        "name=\"invoice_date\" value=\"",
        "381",
        "list=\"units\"",
        "Add a line",
    ];
    assert_shows(&empty, &parts);
    assert!(!empty.contains("Remove this line"), "{empty}");
    let no = invoice_no();
    let csrf = account.owner.get("/account/password").await.csrf();
    let once = number().to_string();
    let tokens = [("csrf", &*csrf), ("once", &*once)];
    let fields = changed(filled(&no, "C-H1"), &tokens);
    let path = account.path(FORM);
    let first = account.owner.send(&path, &fields).await.expect(303);
    account
        .owner
        .send(&path, &fields)
        .await
        .leads_to(&first.location);
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 1);
    let page = account.page(&invoice_path(&account, &first.location)).await;
    assert_shows(&page, &[&no, "Corner Shop Ltd", "3,226.08", "Duplicate"]);
    let edit = invoice_path(&account, &first.location) + "/edit";
    let form = account.page(&edit).await;
    assert_shows(
        &form,
        &["As agreed</textarea>", "Light and fast</textarea>"],
    );
    let again = account.post(FORM, &filled(&no, "C-H1")).await.expect(422);
    let link = format!("href=\"{}\">{no}</a>", first.location);
    let again = again.html;
    assert_shows(&again, &["An invoice has this number already.", &link]);
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 1);
}

#[on_sqlite]
async fn the_next_number_of_the_series_is_proposed(world: &World) {
    let account = Account::new(world).await;
    let proposed = "name=\"invoice_no\" value=\"";
    let empty = account.page(FORM).await;
    assert_shows(&empty, &[&format!("{proposed}\"")]);
    let known = with(&documents::invoice(), "invoice_no", json!("HAND0099"));
    account.taxpayer.invoice(&known).await;
    let next = account.page(FORM).await;
    assert_shows(&next, &[&format!("{proposed}HAND0100\"")]);
}

#[on_sqlite]
async fn a_faulty_form_keeps_its_input_and_names_its_fields(world: &World) {
    let account = Account::new(world).await;
    let no = invoice_no();
    for (name, value, told) in [
        ("due_date", "", "The Due date field is required."),
        ("customer.email", "shop", "The Customer email field"),
        (
            "lines.0.product_category",
            "85",
            "The Line 1, HSN code field must be written 9999.99.",
        ),
        ("lines.0.quantity", "1,5", "The Line 1, quantity field"),
        ("lines.0.item_no", "", "The Line 1, item number field"),
    ] {
        let fields = changed(filled(&no, "C-H2"), &[(name, value)]);
        let refused = account.post(FORM, &fields).await.expect(422).html;
        let typed = format!("name=\"{name}\" value=\"{value}\"");
        let fault = format!("id=\"fault-{name}\"");
        let kept = "Light and fast</textarea>";
        assert_shows(&refused, &[told, &typed, &fault, kept, "data-focus"]);
    }
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 0);
}

#[on_sqlite]
async fn lines_come_and_go_without_being_stored(world: &World) {
    let account = Account::new(world).await;
    let no = invoice_no();
    let more = changed(filled(&no, "C-H3"), &[("add_line", "yes")]);
    let two = account.post(LINES, &more).await.expect(200).html;
    let kept = "name=\"lines.0.item_name\" value=\"Laptop\"";
    let added = "name=\"lines.1.item_name\" value=\"\" autofocus";
    assert_shows(&two, &[kept, added, "name=\"line_count\" value=\"2\""]);
    let both = [
        ("line_count", "2"),
        ("lines.1.item_name", "Case"),
        ("lines.0.remove", "yes"),
    ];
    let fewer = changed(filled(&no, "C-H3"), &both);
    let one = account.post(LINES, &fewer).await.expect(200).html;
    let left = "name=\"lines.0.item_name\" value=\"Case\"";
    assert_shows(&one, &[left, "name=\"line_count\" value=\"1\""]);
    assert!(!one.contains("lines.1."), "{one}");
    assert_eq!(account.taxpayer.count_events("invoice.created").await, 0);
    // The form of a stored invoice takes further lines, too.
    let stored = account.taxpayer.invoice(&documents::invoice()).await;
    let page = format!("/invoices/{}", stored["id"]);
    let seen = seen(&account, &page).await;
    let pressed = [("add_line", "yes"), ("seen", &*seen)];
    let lines = format!("{page}/edit/lines");
    let form = account.post(&lines, &pressed).await.expect(200).html;
    assert_shows(&form, &["Line 2, item", &format!("value=\"{seen}\"")]);
    let line = [
        ("line_count", "2"),
        ("lines.1.item_name", "Case"),
        ("lines.1.item_no", "CASE-1"),
        ("lines.1.item_type", "PRODUCT"),
        ("lines.1.product_category", "8471.30"),
        ("lines.1.quantity", "1"),
        ("lines.1.price_unit", "EA"),
        ("lines.1.unit_price", "10"),
        ("lines.1.tax_category", "STANDARD_VAT"),
    ];
    post_seen(&account, &page, "edit", &line).await.expect(303);
    let whole = account.taxpayer.invoice_with_ledger(&stored).await;
    assert_eq!(whole["lines"][1]["item_name"], "Case");
}

#[on_sqlite]
async fn a_stored_customer_fills_in_the_form_and_keeps_its_data(world: &World) {
    let account = Account::new(world).await;
    let stored = account.taxpayer.invoice(&documents::invoice()).await;
    let address = format!("{FORM}?customer=C-001");
    let name = "name=\"customer.name\" value=\"Retail Stores Ltd\" readonly";
    let form = account.page(&address).await;
    assert_shows(&form, &["Stored customer:", name]);
    let by_number = [("customer.no", "C-001"), ("find_customer", "yes")];
    let found = account.post(LINES, &by_number).await.expect(200).html;
    assert_shows(
        &found,
        &[
            name,
            "name=\"customer.email\" value=\"buyer@retail.example\"",
        ],
    );
    for (no, told) in [
        ("C-001", None),
        ("C-404", Some("No stored customer has this number")),
        ("", Some("Type the number of a stored customer first.")),
    ] {
        let by_number = [("customer.no", no), ("find_customer", "yes")];
        let pressed = account.post(LINES, &by_number).await.expect(200).html;
        let expected = told.unwrap_or("Retail Stores Ltd");
        assert!(pressed.contains(expected), "{no}: {pressed}");
        assert_eq!(pressed.contains("notice warn"), told.is_some(), "{no}");
    }
    let page = format!("/invoices/{}", stored["id"]);
    let typed = [("customer.name", "Another"), ("due_date", "2026-03-01")];
    let saved = post_seen(&account, &page, "edit", &typed).await.expect(303);
    let told = account.owner.get(&saved.location).await.expect(200).html;
    assert_shows(
        &told,
        &[
            "The invoice was changed.",
            "stored data was kept: name.",
            "Retail Stores Ltd",
        ],
    );
}

#[on_sqlite]
async fn the_currency_is_that_of_the_customer_or_of_most_invoices(world: &World) {
    let account = Account::new(world).await;
    for (customer, tin, currency) in [
        ("C-NGN", "11111111-0001", "NGN"),
        ("C-NGN", "11111111-0001", "NGN"),
        ("C-USD", "22222222-0001", "USD"),
    ] {
        let body = with(&documents::invoice(), "currency", json!(currency));
        let body = with(&body, "customer.no", json!(customer));
        let body = with(&body, "customer.tin", json!(tin));
        account.taxpayer.invoice(&body).await;
    }
    for (query, currency) in [
        ("", "NGN"),
        ("?customer=C-USD", "USD"),
        ("?customer=C-NGN", "NGN"),
        ("?customer=C-NEW", "NGN"),
    ] {
        let form = account.page(&format!("{FORM}{query}")).await;
        let chosen = format!("<option value=\"{currency}\" selected>");
        assert!(form.contains(&chosen), "{query}: {form}");
    }
}

#[on_sqlite]
async fn an_invoice_is_made_like_another_one(world: &World) {
    let account = Account::new(world).await;
    let numbered = with(&documents::invoice(), "invoice_no", json!("LIKE0007"));
    let stored = account.taxpayer.invoice(&numbered).await;
    let address = format!("{FORM}?like={}", stored["id"]);
    let page = account.page(&format!("/invoices/{}", stored["id"])).await;
    assert_shows(&page, &[&address]);
    let form = account.page(&address).await;
    let parts = [
        "name=\"invoice_no\" value=\"LIKE0008\"",
        "name=\"lines.0.item_no\" value=\"LAP-1\"",
        "name=\"customer.no\" value=\"C-001\"",
        "value=\"381\" selected",
    ];
    assert_shows(&form, &parts);
    assert!(!form.contains("2026-02-15"), "{form}");
    let full = documents::full_invoice(&account.taxpayer);
    let full = account.taxpayer.new_full_invoice(&full).await;
    let address = account.path(&format!("{FORM}?like={}", full["id"]));
    account.owner.get(&address).await.expect(409);
    let other = Account::new(world).await;
    let address = other.path(&format!("{FORM}?like={}", stored["id"]));
    other.owner.get(&address).await.expect(404);
}

#[on_sqlite]
async fn the_form_suggests_the_units_in_common_use_and_is_small(world: &World) {
    let account = Account::new(world).await;
    let form = account.page(FORM).await;
    assert_shows(&form, &["<option value=\"HUR\">hour</option>"]);
    assert!(!form.contains("<option value=\"TRL\">"), "{form}");
    assert!(form.len() < 60_000, "{}", form.len());
}

#[on_sqlite]
async fn the_data_of_one_customer_does_not_become_that_of_another(world: &World) {
    let account = Account::new(world).await;
    account.taxpayer.invoice(&documents::invoice()).await;
    let person = [("invoice_category", "B2C"), ("customer.tin", "")];
    let no = invoice_no();
    let fields = changed(filled(&no, "C-H5"), &person);
    account.post(FORM, &fields).await.expect(303);
    // The form shows the data of C-001, and then its number is changed.
    let shown = [
        ("invoice_category", "B2C"),
        ("shown_customer", "C-001"),
        ("customer.name", "Retail Stores Ltd"),
        ("customer.email", "buyer@retail.example"),
        ("customer.tin", documents::CUSTOMER_TIN),
    ];
    let no = invoice_no();
    let fields = changed(filled(&no, "C-H5"), &shown);
    let pressed = changed(fields.clone(), &[("find_customer", "yes")]);
    let found = account.post(LINES, &pressed).await.expect(200).html;
    let without_tin = "name=\"customer.tin\" value=\"\"";
    let own_name = "name=\"customer.name\" value=\"Corner Shop Ltd\" readonly";
    assert_shows(&found, &[without_tin, own_name]);
    let saved = account.post(FORM, &fields).await.expect(303);
    let page = account.owner.get(&saved.location).await.expect(200);
    page.shows("Corner Shop Ltd").hides("stored data was kept");
    let form = account.page(&format!("{FORM}?customer=C-H5")).await;
    assert_shows(&form, &[without_tin, own_name]);
    let no = invoice_no();
    let fields = changed(filled(&no, "C-H6"), &shown);
    let refused = account.post(FORM, &fields).await.expect(422);
    refused.shows("The Customer name field is required.");
}

#[on_sqlite]
async fn a_form_with_many_long_lines_is_saved_and_one_with_too_many_fields_is_not(world: &World) {
    let account = Account::new(world).await;
    let no = invoice_no();
    let text = "x".repeat(600);
    let line = [
        ("item_name", "Case"),
        ("item_no", "CASE-1"),
        ("item_type", "PRODUCT"),
        ("product_category", "8471.30"),
        ("quantity", "1"),
        ("price_unit", "EA"),
        ("unit_price", "10"),
        ("tax_category", "STANDARD_VAT"),
        ("description", text.as_str()),
    ];
    let lines =
        (1..100).flat_map(|at| line.map(|(name, value)| (format!("lines.{at}.{name}"), value)));
    let lines: Vec<_> = lines.collect();
    let lines = lines.iter().map(|(name, value)| (name.as_str(), *value));
    let mut fields = changed(filled(&no, "C-H7"), &[("line_count", "100")]);
    fields.extend(lines);
    let full = account.post(LINES, &fields).await.expect(200).html;
    assert!(!full.contains("Add a line"), "{}", full.len());
    account.post(FORM, &fields).await.expect(303);
    let many = vec![("note", "x"); 10_000];
    account.post(LINES, &many).await.expect(413);
}

#[on_sqlite]
async fn what_keeps_the_account_from_creating_is_told_before_typing(world: &World) {
    let account = Account::newcomer(world, &world.integrator()).await;
    let form = account.page(FORM).await;
    let link = format!(
        "<a href=\"{}\">Open the profile</a>",
        account.path("/profile")
    );
    assert_shows(&form, &["The business profile is not complete.", &link]);
    let no = invoice_no();
    let refused = account.post(FORM, &filled(&no, "C-H4")).await.expect(422);
    refused.shows("value=\"Corner Shop Ltd\"");
}
