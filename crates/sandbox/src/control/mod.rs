//! The control interface under `/sandbox`: JSON, no API key needed, for tests and for people with curl.
//!
//! | Method | Path | Does |
//! |---|---|---|
//! | POST, GET, DELETE | `/sandbox/faults` | adds, lists, clears faults |
//! | POST, GET, DELETE | `/sandbox/latencies` | adds, lists, clears latencies and limits of concurrent calls |
//! | POST, GET | `/sandbox/seed` | sets and shows the seed of all random decisions |
//! | POST, GET | `/sandbox/dialect` | sets and shows the dialect: the words and shapes of answers |
//! | GET, DELETE | `/sandbox/calls` | lists and clears the calls received |
//! | GET | `/sandbox/invoices` | lists the signed invoices |
//! | GET | `/sandbox/invoices/{irn}` | shows the record of one reference number |
//! | POST | `/sandbox/businesses` | enrols a business or a party, sets a party online or offline |
//! | POST, GET, DELETE | `/sandbox/access-points` | registers, lists, clears the URLs that notices are sent to |
//! | POST | `/sandbox/notices` | sends a notice now |
//! | POST | `/sandbox/inbound` | adds an invoice from an invented supplier |
//! | GET | `/sandbox/crypto_keys` | shows the keys file for QR codes |

mod answer;
mod hub;
mod inbound;
mod observe;
mod orders;

use actix_web::web::{self, ServiceConfig};
pub use inbound::InboundInvoice;

pub(crate) fn routes(routes: &mut ServiceConfig) {
    let scope = web::scope("/sandbox")
        .service(
            web::resource("/faults")
                .route(web::post().to(orders::add_fault))
                .route(web::get().to(orders::list_faults))
                .route(web::delete().to(orders::clear_faults)),
        )
        .service(
            web::resource("/latencies")
                .route(web::post().to(orders::add_latency))
                .route(web::get().to(orders::list_latencies))
                .route(web::delete().to(orders::clear_latencies)),
        )
        .service(
            web::resource("/seed")
                .route(web::post().to(orders::set_seed))
                .route(web::get().to(orders::show_seed)),
        )
        .service(
            web::resource("/dialect")
                .route(web::post().to(orders::set_dialect))
                .route(web::get().to(orders::show_dialect)),
        )
        .service(
            web::resource("/calls")
                .route(web::get().to(observe::show_calls))
                .route(web::delete().to(observe::clear_calls)),
        )
        .route("/invoices", web::get().to(observe::show_invoices))
        .route("/invoices/{irn}", web::get().to(observe::show_invoice))
        .route("/crypto_keys", web::get().to(observe::show_crypto_keys))
        .route("/businesses", web::post().to(hub::enrol))
        .service(
            web::resource("/access-points")
                .route(web::post().to(hub::register_access_point))
                .route(web::get().to(hub::list_access_points))
                .route(web::delete().to(hub::clear_access_points)),
        )
        .route("/notices", web::post().to(hub::notify))
        .route("/inbound", web::post().to(inbound::plant_invoice))
        .default_service(web::to(answer::answer_unknown_path));
    routes.service(scope);
}
