//! Customers: what each owes, longest overdue first, and the open invoices of one.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with};

use super::{Account, assert_shows, field_value, post_seen};
use crate::support::account::first_customer;
use crate::support::world::World;

/// Returns an invoice without tax to the customer with this number and name.
fn invoice_to(no: &str, name: &str, amount: &str) -> Value {
    let tin = if no == "C-LATE" {
        "11111111-0001"
    } else {
        "22222222-0001"
    };
    let invoice = documents::invoice_with_price(amount, "1");
    let named = with(&invoice, "customer.no", json!(no));
    with(
        &with(&named, "customer.name", json!(name)),
        "customer.tin",
        json!(tin),
    )
}

async fn approve(account: &Account, invoice: &Value) -> Value {
    let stored = account.taxpayer.invoice(invoice).await;
    let approved = account.taxpayer.set_status(&stored, "approved").await;
    approved.expect_status(200);
    stored
}

#[each_database]
async fn each_customer_shows_what_it_owes(world: &World) {
    let account = Account::new(world).await;
    assert_shows(
        &account.page("/customers").await,
        &["Nobody owes anything."],
    );
    assert_shows(
        &account.page("/customers?all=true").await,
        &["There is no customer yet."],
    );
    let late = invoice_to("C-LATE", "Zuma & <Sons>", "1000");
    let late = approve(&account, &with(&late, "due_date", json!("2026-01-20"))).await;
    let paid = json!({
        "unique_no": late["irn"], "unique_no_type": "IRN", "payment_status": "partial", "remark": "part",
    });
    let paid = with(&paid, "amount", exact("300.5"));
    let answer = account.taxpayer.pay(&paid).await;
    answer.expect_status(200);
    let later = invoice_to("C-LATER", "Ade Ltd", "2000");
    let later = approve(&account, &with(&later, "due_date", json!("2999-01-01"))).await;
    let credit = invoice_to("C-LATER", "Ade Ltd", "250");
    let credit = with(&credit, "invoice_type_code", json!("380"));
    let credit = with(&credit, "original_invoice_reference", later["irn"].clone());
    let kind = "original_invoice_reference_type";
    approve(&account, &with(&credit, kind, json!("IRN"))).await;
    // A draft is not owed yet.
    account
        .taxpayer
        .invoice(&invoice_to("C-LATER", "Ade Ltd", "5000"))
        .await;

    let page = account.page("/customers").await;
    assert_shows(
        &page,
        &[
            "Zuma &#38; &#60;Sons&#62;",
            "699.50",
            "Ade Ltd",
            "1,750.00",
            "2,449.50",
            "Of it overdue: 699.50",
        ],
    );
    assert!(
        page.find("Zuma").unwrap() < page.find("Ade Ltd").unwrap(),
        "{page}"
    );
    let all = account.page("/customers?all=true").await;
    assert_shows(&all, &["C-LATE", "C-LATER", "NGN 1,750.00"]);
    assert!(
        all.find("Ade Ltd").unwrap() < all.find("Zuma").unwrap(),
        "{all}"
    );
    let found = account.page("/customers?q=zUMA").await;
    assert_shows(&found, &["C-LATE", "699.50"]);
    assert!(!found.contains("C-LATER"), "{found}");
    assert_shows(
        &account.page("/customers?q=nobody").await,
        &["No customer matches."],
    );

    let path = format!("/customers/{}", first_customer(&page));
    let one = account.page(&path).await;
    let number = late["invoice_no"].as_str().unwrap();
    assert_shows(
        &one,
        &[
            "Zuma &#38; &#60;Sons&#62;",
            number,
            "More than 90 days",
            "NGN 699.50",
        ],
    );
    let other = Account::new(world).await;
    let hidden = other.owner.get(&other.path(&path)).await;
    assert_eq!(hidden.status, 404, "another account's customer");
}

const MOVED: [(&str, &str); 9] = [
    ("name", "Retail Stores Plc"),
    ("email", "buyer@retail.example"),
    ("telephone", "+234 802 000 0000"),
    ("business_description", "Retail of household goods"),
    ("address_street_name", "7 New Road"),
    ("address_city", "Jos"),
    ("address_state", "Plateau"),
    ("address_postal_code", "930001"),
    ("address_country", "NG"),
];

#[each_database]
async fn a_customer_that_moves_is_edited_and_later_invoices_have_its_new_data(world: &World) {
    let account = Account::new(world).await;
    let draft = account.taxpayer.invoice(&documents::invoice()).await;
    let customers = account.page("/customers?all=true").await;
    let page = format!("/customers/{}", first_customer(&customers));
    let edit = format!("{page}/edit");
    assert_shows(&account.page(&page).await, &[&account.path(&edit)]);
    let form = account.page(&edit).await;
    assert_shows(&form, &["value=\"5 Broad Street\"", "87654321-0001"]);
    assert!(!form.contains("name=\"tin\""), "a TIN stays: {form}");
    let seen = field_value(&form, "seen");
    let post = async |typed: &[(&str, &str)]| {
        let fields: Vec<_> = typed.iter().copied().chain([("seen", &*seen)]).collect();
        account.post(&edit, &fields).await
    };
    let odd: Vec<_> = MOVED.into_iter().chain([("email", "plain")]).collect();
    let refused = post(&odd[..]).await.expect(422);
    refused.shows("must be a valid email address");
    post(&MOVED[..]).await.expect(303);
    let shown = account.page(&page).await;
    assert_shows(&shown, &["Retail Stores Plc", "7 New Road, 930001 Jos"]);
    // Somebody else whose form shows the former data changes nothing.
    let other: Vec<_> = MOVED
        .into_iter()
        .chain([("address_city", "Abuja")])
        .collect();
    let late = post(&other[..]).await.expect(412).html;
    assert_shows(
        &late,
        &[
            "The customer has changed meanwhile",
            "<th scope=\"row\">City</th><td>Jos</td><td>Abuja</td>",
        ],
    );
    let activity = account.page("/activity").await;
    assert_eq!(activity.matches("Changed a customer").count(), 1);
    assert_shows(&activity, &["name, telephone, address_street_name"]);

    let later = account.taxpayer.invoice(&documents::invoice()).await;
    assert_eq!(later["customer"]["name"], "Retail Stores Plc");
    let kept = account.taxpayer.reread(&draft).await;
    assert_eq!(kept["customer"]["name"], "Retail Stores Ltd");
    let invoice = format!("/invoices/{}", draft["id"]);
    for notice in ["The invoice was changed.", "Nothing was changed"] {
        let saved = post_seen(&account, &invoice, "edit", &[]).await.expect(303);
        let led = account.owner.get(&saved.location).await.expect(200);
        led.shows(notice);
    }
    let saved = account.taxpayer.reread(&draft).await;
    assert_eq!(saved["customer"]["name"], "Retail Stores Plc");
}
