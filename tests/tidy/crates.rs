//! Which crates and which parts of the standard library may be named where. Test code may name all of them.

use crate::rules::{HOMES, UNSEEN};
use crate::source::{Fault, Parsed};
use crate::uses::Used;

pub(crate) fn faults(file: &Parsed<'_>, uses: &[Used]) -> Vec<Fault> {
    let fault = |name: &str, what: String| Some(file.fault(first_line(uses, name)?, what));
    let unseen = UNSEEN.iter().filter(|(place, _)| file.is_in(place));
    let names = unseen.flat_map(|(place, names)| names.iter().map(move |name| (place, name)));
    let mut faults: Vec<Fault> =
        names.filter_map(|(place, name)| fault(name, format!("`{place}` must not see `{name}`"))).collect();
    // A crate that the place must not see at all is not reported a second time as far from home.
    if faults.is_empty() {
        let away = HOMES.iter().filter(|(_, homes)| !file.is_in_any(homes));
        let homeless = away.filter_map(|(name, homes)| {
            fault(name, format!("`{name}` is named only in {}", homes.join(", ")))
        });
        faults.extend(homeless);
    }
    faults
}

fn first_line(uses: &[Used], name: &str) -> Option<usize> {
    uses.iter().filter(|used| !used.in_test && used.names(name)).map(|used| used.line).min()
}

#[cfg(test)]
mod tests {
    use crate::complaints;

    #[test]
    fn the_domain_sees_no_runtime_no_database_no_network_and_no_wall_clock() {
        for (text, name) in [
            ("use tokio::sync::mpsc;", "tokio"),
            ("use actix::Actor;", "actix*"),
            ("use actix_web::HttpRequest;", "actix*"),
            ("use sea_orm::Value;", "sea_orm"),
            ("use reqwest::Url;", "reqwest"),
            ("use std::time::{Duration, SystemTime};", "std::time::SystemTime"),
            ("use std::time;\nfn f() { time::Instant::now(); }", "std::time::Instant"),
            ("fn f() { std::fs::read(path) }", "std::fs"),
        ] {
            let said = complaints("src/domain/clock.rs", text);
            assert_eq!(said, [format!("`src/domain` must not see `{name}`")], "{text}");
        }
    }

    #[test]
    fn a_glob_brings_in_what_it_covers() {
        let said = complaints("src/domain/clock.rs", "use std::time::*;");
        assert_eq!(said.len(), 2, "{said:?}");
    }

    #[test]
    fn sea_orm_stands_only_in_the_store_and_the_migrations() {
        assert_eq!(complaints("src/store/lanes.rs", "use sea_orm::Set;"), [""; 0]);
        assert_eq!(complaints("migration/src/lib.rs", "use sea_orm::Set;"), [""; 0]);
        let said = complaints("src/http/forms/mod.rs", "use sea_orm::prelude::*;");
        assert_eq!(said, ["`sea_orm` is named only in src/store, migration/src"]);
    }

    #[test]
    fn reqwest_stands_only_where_calls_go_out() {
        assert_eq!(complaints("src/webhook/client.rs", "use reqwest::Client;"), [""; 0]);
        let said = complaints("src/actors/webhook/pool.rs", "use reqwest::Client;");
        assert_eq!(
            said,
            ["`reqwest` is named only in src/authority, src/webhook, src/app/demo, sandbox/src"]
        );
    }

    #[test]
    fn actix_web_stands_only_on_the_surface() {
        assert_eq!(complaints("src/app.rs", "use actix_web::HttpServer;"), [""; 0]);
        let said = complaints("src/actors/taxpayer/mod.rs", "use actix_web::web;");
        assert_eq!(said, ["`actix_web` is named only in src/http, src/console, src/app, sandbox/src"]);
    }

    #[test]
    fn backoff_has_one_home() {
        assert_eq!(complaints("src/authority/retry.rs", "use backoff::ExponentialBackoff;"), [""; 0]);
        let said = complaints("src/authority/client.rs", "use backoff::ExponentialBackoff;");
        assert_eq!(said, ["`backoff` is named only in src/authority/retry"]);
    }

    #[test]
    fn the_sandbox_is_started_by_the_wiring_and_imports_nothing_of_ours() {
        assert_eq!(complaints("src/cli/demo.rs", "use sandbox::Authority;"), [""; 0]);
        let said = complaints("src/authority/client.rs", "use sandbox::Authority;");
        assert_eq!(
            said,
            ["`sandbox` is named only in src/app, src/cli, src/http/openapi/trying, sandbox/src"]
        );
        let said = complaints("sandbox/src/lib.rs", "use einvoice::domain::invoice::irn::Irn;");
        assert_eq!(said, ["`sandbox/src` must not see `einvoice`"]);
    }

    #[test]
    fn test_code_may_name_every_crate() {
        let text = "#[cfg(test)]\nmod tests {\n    use sandbox::Authority;\n}";
        assert_eq!(complaints("src/authority/client.rs", text), [""; 0]);
    }
}
