//! Calls every path with every kind of key, on objects of another tenant. A key without the right to a path must be
//! refused, and no key may read or change another tenant's data. A path without a rule fails the test.

mod calls;
mod rules;
mod tenant;

use actix_web::App;
use actix_web::dev::Service;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::init_service;

use self::calls::{TestCall, read_response, request};
use self::rules::{Rule, keys, rule_for_path, wrong_response_sentence};
use self::tenant::OtherTenant;
use crate::http::path_table;
use crate::http::testing::start_apps;

const READS: [Method; 2] = [Method::GET, Method::HEAD];
const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";

#[actix_web::test]
async fn every_path_accepts_only_its_keys_and_hides_the_data_of_other_tenants() {
    for test_app in start_apps().await {
        let state = test_app.state.clone();
        let app = App::new()
            .app_data(state)
            .wrap(from_fn(super::request_context))
            .configure(super::routes);
        let app = init_service(app).await;
        let ask = async |call: TestCall| {
            read_response(app.call(request(call).to_request()).await.unwrap()).await
        };
        let foreign = OtherTenant::create(&ask).await;
        foreign.check_own_objects_visible(&ask).await;
        let events_before = foreign.events(&ask).await;
        let mut faults = Vec::new();
        let mut count = 0;
        for key in keys(&test_app, &ask).await {
            for path in path_table() {
                // An operator's key may change any tenant's data, so operators' paths are tested only with reads.
                let is_operator_call = rule_for_path(path.pattern) == Rule::Operator
                    && key.accepted_rules.contains(&Rule::Operator);
                for method in path
                    .methods
                    .iter()
                    .filter(|method| !is_operator_call || READS.contains(method))
                {
                    let has_body = !READS.contains(method);
                    let body = has_body.then(|| foreign.body.clone());
                    let called_path = foreign.path(path.pattern);
                    let response = ask(TestCall {
                        method: method.clone(),
                        path: called_path,
                        keys: key.texts.clone(),
                        body,
                    })
                    .await;
                    faults.extend(wrong_response_sentence(&path, method, &key, &response));
                    count += 1;
                }
            }
        }
        assert!(
            faults.is_empty(),
            "{} of {count} answers are wrong:\n{}",
            faults.len(),
            faults.join("\n")
        );
        assert_eq!(
            foreign.events(&ask).await,
            events_before,
            "nobody changed anything of {}",
            foreign.irn
        );
        foreign.check_own_objects_visible(&ask).await;
        println!("{count} requests over {} paths", path_table().len());
    }
}
