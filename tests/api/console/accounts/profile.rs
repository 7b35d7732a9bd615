//! The business profile: what is missing, and the form that completes it.

use serde_json::json;
use testkit::documents;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, field_value};
use crate::support::world::World;

#[each_database]
async fn a_newcomer_completes_the_profile_and_may_create_invoices(world: &World) {
    let account = Account::newcomer(world, &world.integrator()).await;
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &[
            "3 / 6",
            "No invoice can be created",
            "<strong>City</strong>",
            "value=\"3\"",
        ],
    );
    account
        .taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_refusal(403, "PROFILE_INCOMPLETE");
    let fields = [
        ("city", "Lagos"),
        ("state", "Lagos"),
        ("country", "NG"),
        ("phone", ""),
    ];
    let saved = account.post("/profile", &fields).await.expect(303);
    assert_eq!(saved.location, account.path("/profile"));
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &[
            "6 / 6",
            "The profile is complete",
            "value=\"Lagos\"",
            "value=\"+2348010000000\"",
        ],
    );
    account.taxpayer.invoice(&documents::invoice()).await;
    let path = format!(
        "/v1/system-integrators/audit?taxpayer_id={}",
        account.taxpayer.id
    );
    let audit = world.integrator().get(&path).await.expect_status(200);
    let newest = &audit.data()["data"][0];
    assert_eq!(
        (&newest["actor"], &newest["action"]),
        (&json!("contact"), &json!("taxpayer.update-profile"))
    );
}

#[on_sqlite]
async fn a_blanked_phone_is_removed_and_a_form_without_a_change_says_so(world: &World) {
    let account = Account::new(world).await;
    let phone = "+2348010000000";
    // The phone and the city that are sent, the notice, and whether the phone is stored afterwards.
    for (sent, city, notice, has_phone) in [
        (phone, "Lagos", "Nothing was changed.", true),
        (phone, "", "Nothing was changed.", true),
        ("", "Lagos", "The profile was changed.", false),
        ("", "Lagos", "Nothing was changed.", false),
    ] {
        let page = account.page("/profile").await;
        let before = field_value(&page, "before");
        let fields = [("phone", sent), ("city", city), ("before", &*before)];
        let saved = account.post("/profile", &fields).await.expect(303);
        let led = account.owner.get(&saved.location).await.expect(200);
        let html = led.shows(notice).html;
        assert_eq!(html.contains(phone), has_phone, "{sent} {city}");
        assert!(html.contains("value=\"Lagos\""), "{html}");
    }
}

#[on_sqlite]
async fn a_fault_stands_beside_its_field_and_nothing_is_changed(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let hostile = r#"x@example.com"><script>"#;
    let fields = [("business_email", hostile), ("city", "Abuja")];
    let page = account.post("/profile", &fields).await.expect(422).html;
    assert_shows(
        &page,
        &[
            "The business_email field must be",
            "value=\"Abuja\"",
            "aria-invalid=\"true\"",
        ],
    );
    assert!(!page.contains("<script>\""), "{page}");
    let taken = other.taxpayer.id;
    let email = world
        .integrator()
        .get(&format!("/v1/system-integrators/taxpayers/{taken}"))
        .await;
    let fields = [("business_email", email.data()["email"].as_str().unwrap())];
    let page = account.post("/profile", &fields).await.expect(422).html;
    assert_shows(&page, &["The business_email has already been taken."]);
    assert_shows(&account.page("/profile").await, &["value=\"Lagos\""]);
}

#[each_database]
async fn an_owner_sets_the_look_and_the_rules(world: &World) {
    let account = Account::new(world).await;
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &["Documents have no logo.", "value=\"classic\" selected"],
    );
    let fields = [
        ("registration_number", "RC <1>"),
        ("template", "compact"),
        ("colours.accent", "#aa2200"),
        ("strict_numbers", "true"),
    ];
    let saved = account.post("/profile/settings", &fields).await.expect(303);
    assert_eq!(saved.location, account.path("/profile"));
    let page = account.page("/profile").await;
    assert_shows(
        &page,
        &[
            "value=\"RC &#60;1&#62;\"",
            "value=\"compact\" selected",
            "value=\"#aa2200\"",
            "name=\"strict_numbers\" value=\"true\" checked",
            "name=\"strict_documents\" value=\"true\">",
        ],
    );
    let odd = [("template", "odd"), ("colours.accent", "red")];
    let page = account
        .post("/profile/settings", &odd)
        .await
        .expect(422)
        .html;
    assert_shows(&page, &["must be one of classic, compact", "#rrggbb"]);
    // A box that is not checked, and a number that is blank, are off.
    let page = account.page("/profile").await;
    let (_, form) = page.split_once("/profile/settings").unwrap();
    let before = field_value(form, "before");
    let blank = [("template", "classic"), ("before", &*before)];
    account.post("/profile/settings", &blank).await.expect(303);
    let page = account.page("/profile").await;
    assert!(!page.contains("RC "), "{page}");
    assert!(!page.contains(" checked"), "{page}");
}

#[each_database]
async fn an_owner_sets_and_removes_the_logo(world: &World) {
    let account = Account::new(world).await;
    account
        .owner
        .get(&account.path("/profile/picture"))
        .await
        .expect(404);
    let logo = documents::logo();
    let address = format!("data:image/svg+xml;base64,{}", logo.as_str().unwrap());
    account
        .post("/profile/logo", &[("logo", &address)])
        .await
        .expect(303);
    assert_shows(
        &account.page("/profile").await,
        &["/profile/picture", "image/svg+xml", "Remove the logo"],
    );
    let picture = account
        .owner
        .get(&account.path("/profile/picture"))
        .await
        .expect(200);
    assert!(picture.html.starts_with("<svg"), "{}", picture.html);
    // More than a form without a file may have.
    let large = "A".repeat(200 * 1024);
    let page = account
        .post("/profile/logo", &[("logo", &large)])
        .await
        .expect(422)
        .html;
    assert_shows(&page, &["The logo field cannot be used"]);
    let huge = "A".repeat(2 * 1024 * 1024);
    account
        .post("/profile/logo", &[("logo", &huge)])
        .await
        .expect(413);
    account
        .post("/profile/logo", &[("remove", "true")])
        .await
        .expect(303);
    assert_shows(
        &account.page("/profile").await,
        &["Documents have no logo."],
    );
}
