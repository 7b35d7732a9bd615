//! `/v1/core`.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::on_sqlite;

use crate::support::world::{ALONE, World};

const ENUMS: &str = "/v1/core/commons/enums";
const CATEGORIES: &str = "/v1/core/commons/invoice-categories";

#[on_sqlite]
async fn the_invoice_categories_are_public(world: &World) {
    let answer = world.anonymous().get(CATEGORIES).await.expect_status(200);
    assert_eq!(answer.body["success"], json!(true));
    let option = |value: &str| json!({ "label": value, "value": value });
    let expected = ["Blank", "B2B", "B2C", "B2G"].map(option);
    assert_eq!(*answer.data(), json!({ "invoice_categories": expected }));
}

#[on_sqlite]
async fn the_enums_are_labelled_in_upper_case_and_custom_is_bespoke(world: &World) {
    let taxpayer = world.taxpayer().await;
    for answer in [
        taxpayer.get(ENUMS).await,
        world.integrator().get(ENUMS).await,
    ] {
        let data = answer.expect_status(200).data().clone();
        let labels = |list: &str| {
            let labels = data[list]
                .as_array()
                .unwrap()
                .iter()
                .map(|option| option["label"].as_str().unwrap());
            labels.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            labels("auth_types"),
            [
                "NONE",
                "BASIC",
                "API KEY",
                "OAUTH2",
                "NTLM",
                "CLIENT CREDENTIALS"
            ]
        );
        assert_eq!(
            labels("data_formats"),
            ["REST", "SOAP", "GRAPHQL", "ODATA", "JSON RPC"]
        );
        assert_eq!(labels("erp_systems").last().unwrap(), "BESPOKE");
        assert_eq!(
            data["data_formats"][4],
            json!({ "label": "JSON RPC", "value": "jsonrpc" })
        );
    }
    world
        .anonymous()
        .get(ENUMS)
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    world
        .anonymous()
        .with_key("xyz_1")
        .get(ENUMS)
        .await
        .expect_refusal(403, "KEY_NOT_RECOGNIZED");
}

#[on_sqlite]
async fn every_reference_list_is_a_flat_array_asked_for_live(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (list, field, rows) in [
        ("invoice-types", "code", 20),
        ("payment-means", "code", 12),
        ("tax-categories", "percent", 27),
        ("currencies", "decimal_digits", 118),
        ("vat-exemptions", "heading_no", 236),
        ("product-codes", "hscode", 5_612),
        ("service-codes", "code", 419),
        ("invoice-quantity-codes", "name", 1_756),
        ("lgas", "state_code", 774),
        ("states", "name", 37),
        ("countries", "alpha_2", 249),
    ] {
        let answer = taxpayer
            .get(&format!("/v1/core/resources/{list}"))
            .await
            .expect_status(200);
        let items = answer.data().as_array().unwrap();
        assert_eq!(items.len(), rows, "{list}");
        assert!(items[0].get(field).is_some(), "{list}");
    }
    let unknown = taxpayer.get("/v1/core/resources/colours").await;
    unknown.expect_refusal(404, "ROUTE_NOT_FOUND");
}

#[on_sqlite(ALONE)]
async fn a_list_that_the_authority_refuses_or_lacks_is_one_that_it_cannot_give_now(world: &World) {
    let taxpayer = world.taxpayer().await;
    for status in [400, 404, 410, 422] {
        let mut fault = FaultOrder::new(FaultKind::ServerError).on(Operation::Resources);
        fault.status = Some(status);
        world.authority.add_fault(fault).unwrap();
        let answer = taxpayer.get("/v1/core/resources/states").await;
        let answer = answer.expect_refusal(502, "AUTHORITY_UNAVAILABLE");
        assert_ne!(answer.header("retry-after"), "", "{status}");
        taxpayer
            .get("/v1/core/resources/states")
            .await
            .expect_status(200);
    }
}

#[on_sqlite]
async fn the_invoice_categories_do_not_look_at_a_key(world: &World) {
    for key in ["tpk_unknown", "sik_unknown", "nonsense"] {
        world
            .anonymous()
            .with_key(key)
            .get(CATEGORIES)
            .await
            .expect_status(200);
    }
}
