//! The pages of an integrator about all its taxpayers: the list with the worst first, its CSV, the switcher, new
//! taxpayers, and the webhooks of many.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use testkit::documents;
use testkit::receiver::Receiver;
use testkit::roles::Integrator;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, signed_in};
use crate::support::visitor::{Seen, Visitor};
use crate::support::world::World;

const LIST: &str = "/dashboard/taxpayers";

async fn integrator(world: &World) -> (Integrator, Visitor) {
    let (integrator, email, password) = world.new_integrator_person().await;
    (integrator, signed_in(world, &email, &password).await)
}

/// Returns where each of these texts begins in the page.
fn places<const N: usize>(page: &str, texts: [&str; N]) -> [usize; N] {
    texts.map(|text| {
        page.find(text)
            .unwrap_or_else(|| panic!("{text} is not in {page}"))
    })
}

#[each_database]
async fn the_worst_taxpayer_is_first_and_each_part_of_the_list_has_its_own(world: &World) {
    let (integrator, person) = integrator(world).await;
    let troubled = Account::newcomer(world, &integrator).await;
    let profile = serde_json::json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    let id = troubled.taxpayer.id;
    integrator
        .change_profile(id, &profile)
        .await
        .expect_status(200);
    troubled.refused_invoice().await;
    let calm = Account::newcomer(world, &integrator).await;
    let page = person.get(LIST).await.expect(200).html;
    let [first, second] = places(&page, [&troubled.path("\""), &calm.path("\"")]);
    assert!(first < second, "{page}");
    assert_shows(&page, &["Rejected or failed invoices: 1", "Not set up"]);
    for (need, shown, hidden) in [
        ("attention", Some(&troubled), Some(&calm)),
        ("webhook", None, Some(&calm)),
        ("incomplete", Some(&calm), None),
        ("waiting", None, Some(&troubled)),
        ("inactive", None, Some(&calm)),
    ] {
        let page = person.get(&format!("{LIST}?need={need}")).await.expect(200);
        let page = match shown {
            Some(account) => page.shows(&account.path("\"")),
            None => page.shows("No taxpayer matches."),
        };
        if let Some(account) = hidden {
            page.hides(&account.path("\""));
        }
    }
    person.get(&format!("{LIST}?need=odd")).await.expect(422);
    let csv = person.get(&format!("{LIST}/usage.csv?month=2026-01")).await;
    let csv = csv.expect(200).html;
    let lines: Vec<_> = csv.lines().collect();
    assert!(
        lines[0].starts_with("id,name,tin_no,subscription,invoices,"),
        "{csv}"
    );
    assert!(lines[1].starts_with(&format!("{id},")), "{csv}");
    assert_eq!(lines.len(), 3, "{csv}");
}

#[each_database]
async fn the_switcher_leads_to_the_taxpayer_that_is_meant(world: &World) {
    let (integrator, person) = integrator(world).await;
    let account = Account::newcomer(world, &integrator).await;
    let other = Account::newcomer(world, &integrator).await;
    let page = person.get(&other.path("/invoices")).await.expect(200).html;
    assert_shows(
        &page,
        &["/dashboard/taxpayers/open", "Switch to a taxpayer"],
    );
    let page = account.page("/invoices").await;
    assert!(!page.contains("/dashboard/taxpayers/open"), "{page}");
    let open = async |text: &str| {
        let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        person.get(&format!("{LIST}/open?q={text}")).await
    };
    open(&account.email)
        .await
        .leads_to(&format!("{LIST}?q={}", account.email.replace('@', "%40")));
    let tin = documents_tin(&integrator, account.taxpayer.id).await;
    open(&tin).await.leads_to(&account.path(""));
    account
        .owner
        .get(&format!("{LIST}/open?q=a"))
        .await
        .expect(404);
}

async fn documents_tin(integrator: &Integrator, id: i64) -> String {
    let shown = integrator
        .get(&format!("/v1/system-integrators/taxpayers/{id}"))
        .await
        .expect_status(200);
    shown.data()["tin"].as_str().unwrap().to_owned()
}

/// Returns the fields of the form, or the cells of a row, for the body of Create Taxpayer.
fn fields(body: &Value) -> Vec<(String, String)> {
    let object = body.as_object().unwrap().iter();
    object
        .flat_map(|(name, value)| match value {
            Value::Object(person) => person
                .iter()
                .filter(|(part, _)| *part != "password")
                .map(|(part, text)| (format!("{name}.{part}"), text.as_str().unwrap().to_owned()))
                .collect(),
            text => vec![(name.clone(), text.as_str().unwrap().to_owned())],
        })
        .collect()
}

async fn submit(person: &Visitor, path: &str, fields: &[(String, String)]) -> Seen {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    person.submit(path, &fields).await
}

#[each_database]
async fn a_taxpayer_is_added_by_the_form_and_many_by_a_file(world: &World) {
    let (_, person) = integrator(world).await;
    let new = format!("{LIST}/new");
    let body = documents::taxpayer();
    let added = submit(&person, &new, &fields(&body)).await.expect(303);
    person
        .get(&added.location)
        .await
        .expect(200)
        .shows("The taxpayer was added.");
    let refused = submit(&person, &new, &fields(&body)).await.expect(422);
    refused
        .shows("has already been taken.")
        .shows("fault-tin_no");
    person
        .submit(&new, &[])
        .await
        .expect(422)
        .shows("fault-contact_person.email");

    let good = fields(&documents::taxpayer());
    let mut bad = fields(&documents::taxpayer());
    for (name, text) in &mut bad {
        if name == "authority_service_id" {
            "odd".clone_into(text);
        }
    }
    let names: Vec<_> = good.iter().map(|(name, _)| name.clone()).collect();
    let row = |fields: &[(String, String)]| {
        let cells = fields.iter().map(|(_, text)| format!("\"{text}\""));
        cells.collect::<Vec<_>>().join(",")
    };
    let shifted = format!("{},extra", row(&fields(&documents::taxpayer())));
    let file = [
        names.join(","),
        row(&good),
        row(&bad),
        row(&fields(&body)),
        shifted,
    ];
    let file = file.join("\n");
    let encoded = format!("data:text/csv;base64,{}", STANDARD.encode(file));
    let path = format!("{LIST}/file");
    let result = person
        .submit(&path, &[("file", &encoded)])
        .await
        .expect(200);
    result
        .shows("2 done, 2 not")
        .shows("exactly 8 hexadecimal characters")
        .shows("of the line, extra, stands under no name")
        .shows("You have this taxpayer already.");
    let again = person
        .submit(&path, &[("file", &encoded)])
        .await
        .expect(200);
    again.shows("2 done, 2 not").hides("Added.");
    let odd = format!("data:text/csv;base64,{}", STANDARD.encode("colour\nred\n"));
    person
        .submit(&path, &[("file", &odd)])
        .await
        .expect(422)
        .shows("There is no column");
    person
        .get(LIST)
        .await
        .expect(200)
        .shows("<span class=\"count\">2</span>");
}

#[each_database]
async fn a_taxpayer_that_is_added_with_its_location_is_complete(world: &World) {
    let (_, person) = integrator(world).await;
    let location = [("city", "Ikeja"), ("state", "Lagos"), ("country", "NG")];
    let location = location.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let mut complete = fields(&documents::taxpayer());
    complete.extend(location.clone());
    let added = submit(&person, &format!("{LIST}/new"), &complete).await;
    let page = person.get(&added.expect(303).location).await.expect(200);
    page.shows("The taxpayer was added.")
        .hides("Before its first invoice");

    let filled = |country: &str, city: &str| {
        let mut row = fields(&documents::taxpayer());
        row.extend(location.clone());
        for (name, text) in &mut row {
            match name.as_str() {
                "country" => country.clone_into(text),
                "city" => city.clone_into(text),
                _ => {}
            }
        }
        row
    };
    let rows = [
        filled("NG", "Ikeja"),
        filled("Narnia", ""),
        filled("NG", &"x".repeat(256)),
    ];
    let names = rows[0].iter().map(|(name, _)| name.clone());
    let header = names.collect::<Vec<_>>().join(",");
    let lines = rows.iter().map(|row| {
        let cells = row.iter().map(|(_, text)| format!("\"{text}\""));
        cells.collect::<Vec<_>>().join(",")
    });
    let file: Vec<_> = std::iter::once(header).chain(lines).collect();
    let encoded = STANDARD.encode(file.join("\n"));
    let encoded = format!("data:text/csv;base64,{encoded}");
    let result = person
        .submit(&format!("{LIST}/file"), &[("file", &encoded)])
        .await;
    result
        .expect(200)
        .shows("2 done, 1 not")
        .shows("Before its first invoice its profile needs: city.")
        .shows("country is not on the list of countries");
}

#[on_sqlite(&[("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "1")])]
async fn the_form_of_a_taxpayer_beyond_a_limit_keeps_what_was_typed(world: &World) {
    let (_, person) = integrator(world).await;
    let new = format!("{LIST}/new");
    let taxpayer = fields(&documents::taxpayer());
    submit(&person, &new, &taxpayer).await.expect(303);
    submit(&person, &new, &taxpayer).await.expect(422);
    let limited = submit(&person, &new, &taxpayer).await.expect(422);
    let limited = limited.shows("Too many requests; try again when Retry-After has passed");
    let (_, tin) = taxpayer.iter().find(|(name, _)| name == "tin_no").unwrap();
    limited.shows(&format!("value=\"{tin}\""));
}

#[each_database]
async fn the_webhooks_of_many_are_set_at_once_and_those_of_others_stay(world: &World) {
    let (integrator, person) = integrator(world).await;
    let receiver = Receiver::start();
    let mine = [
        Account::newcomer(world, &integrator).await,
        Account::newcomer(world, &integrator).await,
    ];
    let other = Account::newcomer(world, &world.integrator()).await;
    let path = format!("{LIST}/webhooks");
    person
        .get(&path)
        .await
        .expect(422)
        .shows("Nothing is chosen.");
    person
        .get(&format!("{path}?all=true&filter="))
        .await
        .expect(200)
        .shows("Webhooks of 2");
    let ids = [&mine[0], &mine[1], &other].map(|account| account.taxpayer.id.to_string());
    let url = receiver.url();
    let send = async |fields: &[(&str, &str)]| {
        let ids = ids.iter().map(|id| ("id", id.as_str()));
        let fields: Vec<_> = ids.chain(fields.iter().copied()).collect();
        person.submit(&path, &fields).await
    };
    let refused = send(&[("act", "set"), ("webhook_url", "ftp://x")]).await;
    refused.expect(422).shows("fault-webhook_url");
    for events in [None, Some(("enabled_events", "odd.event"))] {
        let fields = [("act", "set"), ("webhook_url", &*url)];
        let fields: Vec<_> = fields.into_iter().chain(events).collect();
        let set = send(&fields).await.expect(200);
        set.shows("0 done, 2 not").shows("no event is enabled");
    }
    let fields = [
        ("act", "set"),
        ("webhook_url", &*url),
        ("enabled_events", "invoice.created"),
    ];
    send(&fields)
        .await
        .expect(200)
        .shows("2 done")
        .shows("The webhook is set.");
    for account in &mine {
        let page = account.page("/webhooks").await;
        assert_shows(&page, &[&url, "value=\"invoice.created\" checked"]);
    }
    assert_shows(&other.page("/webhooks").await, &["Not set up"]);
    send(&[("act", "enable")])
        .await
        .expect(200)
        .shows("0 done, 2 not")
        .shows("not disabled");
    let disabled = format!(
        "UPDATE webhooks SET is_active = FALSE, disabled_reason = 'gone', disabled_after = 0 WHERE taxpayer_id = {}",
        ids[0]
    );
    assert_eq!(world.execute(&disabled).await, 1);
    send(&[("act", "enable")])
        .await
        .expect(200)
        .shows("1 done, 1 not");
    let page = mine[0].page("/webhooks").await;
    assert_shows(&page, &["Idle", "No event was sent in the last 24 hours."]);
}

#[on_sqlite]
async fn nobody_but_an_integrator_has_these_pages(world: &World) {
    let account = Account::new(world).await;
    for page in ["", "/new", "/webhooks?all=true", "/usage.csv", "/open"] {
        account
            .owner
            .get(&format!("{LIST}{page}"))
            .await
            .expect(404);
    }
    for form in ["/new", "/file", "/webhooks"] {
        let path = format!("{LIST}{form}");
        account.owner.submit(&path, &[]).await.expect(404);
        let (_, person) = integrator(world).await;
        person
            .send(&path, &[("csrf", "odd"), ("once", "1")])
            .await
            .expect(403);
    }
}
