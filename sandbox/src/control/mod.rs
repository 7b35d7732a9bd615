//! The control interface under `/sandbox`: JSON, without keys, for tests and for people with curl.
//!
//! | Method | Path | Does |
//! |---|---|---|
//! | POST, GET, DELETE | `/sandbox/faults` | orders, lists, clears faults |
//! | POST, GET, DELETE | `/sandbox/latencies` | orders, lists, clears how long calls take and how many are served at once |
//! | POST, GET | `/sandbox/seed` | sets and tells what everything left to chance is drawn with |
//! | POST, GET | `/sandbox/dialect` | sets and tells how answers are worded and shaped |
//! | GET, DELETE | `/sandbox/calls` | lists, forgets calls |
//! | GET | `/sandbox/invoices`, `/sandbox/invoices/{irn}` | every signed invoice; what is known of a reference number |
//! | POST | `/sandbox/businesses` | enrols, sets online and offline |
//! | POST, GET, DELETE | `/sandbox/access-points` | registers, lists, forgets notice URLs |
//! | POST | `/sandbox/notices` | sends a notice now |
//! | POST | `/sandbox/inbound` | plants an invoice from another supplier |
//! | GET | `/sandbox/crypto_keys` | the keys file |

mod answer;
mod hub;
mod inbound;
mod observe;
mod orders;

use actix_web::web::{self, ServiceConfig};
pub use inbound::Inbound;

pub(crate) fn routes(routes: &mut ServiceConfig) {
    let scope = web::scope("/sandbox")
        .service(
            web::resource("/faults")
                .route(web::post().to(orders::add))
                .route(web::get().to(orders::list))
                .route(web::delete().to(orders::clear)),
        )
        .service(
            web::resource("/latencies")
                .route(web::post().to(orders::add_latency))
                .route(web::get().to(orders::list_latencies))
                .route(web::delete().to(orders::clear_latencies)),
        )
        .service(
            web::resource("/seed").route(web::post().to(orders::set_seed)).route(web::get().to(orders::seed)),
        )
        .service(
            web::resource("/dialect")
                .route(web::post().to(orders::set_dialect))
                .route(web::get().to(orders::dialect)),
        )
        .service(
            web::resource("/calls")
                .route(web::get().to(observe::calls))
                .route(web::delete().to(observe::forget)),
        )
        .route("/invoices", web::get().to(observe::invoices))
        .route("/invoices/{irn}", web::get().to(observe::invoice))
        .route("/crypto_keys", web::get().to(observe::crypto_keys))
        .route("/businesses", web::post().to(hub::enrol))
        .service(
            web::resource("/access-points")
                .route(web::post().to(hub::register))
                .route(web::get().to(hub::list))
                .route(web::delete().to(hub::clear)),
        )
        .route("/notices", web::post().to(hub::notify))
        .route("/inbound", web::post().to(inbound::plant))
        .default_service(web::to(answer::unknown));
    routes.service(scope);
}
