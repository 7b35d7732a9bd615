//! POST /v1/system-integrators/taxpayers.

use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents::{self, number};
use testkit::edit::{with, without};
use testkit::roles::TAXPAYERS;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

#[each_database]
async fn a_new_taxpayer_reads_with_tin_no_and_precise_stamps(world: &World) {
    let body = documents::taxpayer();
    let answer = world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
    let same = [
        "name",
        "email",
        "tin_no",
        "address",
        "nature_of_business",
        "authority_business_id",
        "authority_service_id",
    ];
    for name in same {
        assert_eq!(answer.data()[name], body[name], "{name}");
    }
    for stamp in ["created_at", "updated_at"] {
        let stamp = answer.data()[stamp].as_str().unwrap();
        assert_eq!(stamp.len(), "2026-01-15T10:00:00.000000Z".len(), "{stamp}");
        assert!(
            jiff::civil::DateTime::strptime("%Y-%m-%dT%H:%M:%S.%6fZ", stamp).is_ok(),
            "{stamp}"
        );
    }
    let unsteady = [
        "name",
        "email",
        "tin_no",
        "authority_business_id",
        "authority_service_id",
        "id",
    ];
    let unsteady = unsteady.map(|name| format!("/data/{name}"));
    let mut unsteady: Vec<_> = unsteady.iter().map(String::as_str).collect();
    unsteady.extend(["/data/created_at", "/data/updated_at"]);
    insta::assert_snapshot!(stable_text(&answer.body, &unsteady), @r#"
            {
              "data": {
                "address": "1 Marina Road",
                "authority_business_id": "…",
                "authority_service_id": "…",
                "created_at": "…",
                "email": "…",
                "id": "…",
                "name": "…",
                "nature_of_business": "Wholesale of computers",
                "tin_no": "…",
                "updated_at": "…"
              },
              "message": "Taxpayer created successfully",
              "success": true
            }
        "#);
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_nothing_is_created(world: &World) {
    let integrator = world.new_integrator().await;
    let odd = with(&documents::taxpayer(), "tin_no", json!("1".repeat(21)));
    let odd = without(&with(&odd, "contact_person.email", json!("ada")), "address");
    integrator.create_taxpayer(&odd).await.expect_faults(&[
        "address",
        "contact_person.email",
        "tin_no",
    ]);
    assert_eq!(integrator.get(TAXPAYERS).await.data()["total"], json!(0));
}

#[each_database]
async fn what_is_optional_may_be_left_out(world: &World) {
    let mut body = documents::taxpayer();
    for path in ["phone", "nature_of_business", "contact_person.phone"] {
        body = without(&body, path);
    }
    let answer = world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
    assert_eq!(answer.message(), "Taxpayer created successfully");
    assert_eq!(answer.data()["nature_of_business"], json!(null));
}

#[each_database]
async fn values_at_the_ends_of_what_is_allowed_are_accepted(world: &World) {
    let n = number();
    let mut body = documents::taxpayer();
    for (path, value) in [
        ("name", json!("é".repeat(255))),
        ("tin_no", json!(format!("{n:020}"))),
        ("nature_of_business", json!("é".repeat(500))),
        (
            "authority_service_id",
            json!(format!("{:08x}", 0xB000_0000 + n)),
        ),
        ("contact_person.password", json!("twelve chars")),
    ] {
        body = with(&body, path, value);
    }
    world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
}

#[on_sqlite]
async fn a_common_password_is_accepted_with_a_warning_and_a_short_one_is_refused(world: &World) {
    let integrator = world.integrator();
    let with_password = |password: &str| {
        with(
            &documents::taxpayer(),
            "contact_person.password",
            json!(password),
        )
    };
    let created = integrator
        .create_taxpayer(&with_password("Password123!"))
        .await
        .expect_status(201);
    assert!(
        created.warnings().contains("contact_person.password"),
        "{}",
        created.warnings()
    );
    let refused = integrator
        .create_taxpayer(&with_password("secret123"))
        .await;
    refused.expect_faults(&["contact_person.password"]);
}

#[each_database]
async fn unique_fields_are_unique_over_all_integrators(world: &World) {
    let first = documents::taxpayer();
    world
        .integrator()
        .create_taxpayer(&first)
        .await
        .expect_status(201);
    let other = world.new_integrator().await;
    let upper = |path: &str| json!(first[path].as_str().unwrap().to_uppercase());
    for (path, taken) in [
        ("email", first["email"].clone()),
        ("tin_no", first["tin_no"].clone()),
        (
            "authority_service_id",
            first["authority_service_id"].clone(),
        ),
        (
            "authority_business_id",
            first["authority_business_id"].clone(),
        ),
        (
            "contact_person.email",
            first["contact_person"]["email"].clone(),
        ),
        ("email", upper("email")),
    ] {
        let body = with(&documents::taxpayer(), path, taken);
        other.create_taxpayer(&body).await.expect_faults(&[path]);
    }
    let all = other.create_taxpayer(&first).await;
    let paths = [
        "email",
        "tin_no",
        "authority_service_id",
        "authority_business_id",
        "contact_person.email",
    ];
    all.expect_faults(&paths);
    assert_eq!(other.get(TAXPAYERS).await.data()["total"], json!(0));
}

const TAKEN: &str = "has already been taken";
const HIDDEN: &str = "must not contain invisible characters";
const IMITATED: &str = "must not have letters that look like others";

/// Spellings of the tax number `01234567-0001` that people take for the same, one of each kind, and the words that
/// refuse them. All others are tested where tax numbers are compared.
const LOOK_ALIKES: [(&str, &str); 7] = [
    ("012345670001", TAKEN),
    ("01234567\u{2013}0001", TAKEN),
    ("01234567-\u{ff10}001", TAKEN),
    ("O1234567-OOO1", TAKEN),
    ("0\u{2160}234567-0001", TAKEN),
    ("\u{41e}1234567-0001", IMITATED),
    ("01234567-\u{200b}0001", HIDDEN),
];

#[each_database(ALONE)]
async fn a_tax_number_that_looks_like_a_taken_one_is_refused(world: &World) {
    let first = with(&documents::taxpayer(), "tin_no", json!("01234567-0001"));
    world
        .integrator()
        .create_taxpayer(&first)
        .await
        .expect_status(201);
    let other = world.new_integrator().await;
    for (look_alike, words) in LOOK_ALIKES {
        let answer = other
            .create_taxpayer(&with(&documents::taxpayer(), "tin_no", json!(look_alike)))
            .await;
        let answer = answer.expect_faults(&["tin_no"]);
        assert!(
            answer.message().contains(words),
            "{look_alike:?}: {}",
            answer.message()
        );
    }
    assert_eq!(other.get(TAXPAYERS).await.data()["total"], json!(0));
}

#[each_database]
async fn of_look_alikes_that_come_at_once_one_is_created(world: &World) {
    let integrator = world.integrator();
    let first = documents::taxpayer();
    let tin = first["tin_no"].as_str().unwrap();
    let spellings = ["-", "", " ", "/", ".", "\u{2013}"].map(|dash| tin.replace('-', dash));
    let created = spellings.map(async |tin| {
        integrator
            .create_taxpayer(&with(&documents::taxpayer(), "tin_no", json!(tin)))
            .await
            .status
    });
    let mut statuses = futures_util::future::join_all(created).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 422, 422, 422, 422, 422]);
}

#[on_sqlite(&[("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "2")])]
async fn a_caller_that_asks_for_many_taken_names_is_limited(world: &World) {
    let integrator = world.integrator();
    let first = documents::taxpayer();
    integrator.create_taxpayer(&first).await.expect_status(201);
    let guess = with(&documents::taxpayer(), "tin_no", first["tin_no"].clone());
    for _ in 0..2 {
        integrator
            .create_taxpayer(&guess)
            .await
            .expect_faults(&["tin_no"]);
    }
    let refused = integrator
        .create_taxpayer(&guess)
        .await
        .expect_refusal(429, "RATE_LIMITED");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
    integrator
        .create_taxpayer(&documents::taxpayer())
        .await
        .expect_status(201);
}

#[on_sqlite(&[("ACCOUNTS__TAXPAYERS_PER_INTEGRATOR_MAX", "10")])]
async fn beyond_its_quota_an_integrator_does_not_learn_which_values_are_taken(world: &World) {
    let integrator = world.new_integrator().await;
    let first = documents::taxpayer();
    integrator.create_taxpayer(&first).await.expect_status(201);
    for _ in 1..10 {
        let body = documents::taxpayer();
        integrator.create_taxpayer(&body).await.expect_status(201);
    }
    let taken = with(&documents::taxpayer(), "tin_no", first["tin_no"].clone());
    for body in [taken, documents::taxpayer()] {
        integrator
            .create_taxpayer(&body)
            .await
            .expect_refusal(403, "TAXPAYER_LIMIT_REACHED");
    }
}

#[each_database]
async fn the_case_of_hexadecimal_does_not_make_an_id_another_one(world: &World) {
    let n = number();
    let with_ids = |service: String, business: String| {
        let body = with(
            &documents::taxpayer(),
            "authority_service_id",
            json!(service),
        );
        with(&body, "authority_business_id", json!(business))
    };
    let service = format!("{:08x}", 0xC000_0000 + n);
    let business = format!("abcdefab-1111-4111-8111-{n:012}");
    let first = with_ids(service.clone(), business.clone());
    world
        .integrator()
        .create_taxpayer(&first)
        .await
        .expect_status(201);
    let again = with_ids(service.to_uppercase(), business.to_uppercase());
    let answer = world.integrator().create_taxpayer(&again).await;
    answer.expect_faults(&["authority_service_id", "authority_business_id"]);
}

#[each_database]
async fn a_contact_may_have_the_address_of_its_business(world: &World) {
    let body = documents::taxpayer();
    let body = with(&body, "contact_person.email", body["email"].clone());
    world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
}

#[on_sqlite]
async fn only_an_integrators_key_opens_the_integrator_surface(world: &World) {
    let body = documents::taxpayer();
    let answer = world.anonymous().send("POST", TAXPAYERS, &body).await;
    answer.expect_refusal(401, "UNAUTHENTICATED");
    for key in ["sik_unknown", "nonsense"] {
        let answer = world
            .anonymous()
            .with_key(key)
            .send("POST", TAXPAYERS, &body)
            .await;
        answer.expect_refusal(401, "INVALID_API_KEY");
    }
    let answer = world.taxpayer().await.send("POST", TAXPAYERS, &body).await;
    answer.expect_refusal(401, "INVALID_API_KEY");
}
