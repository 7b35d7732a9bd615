//! Redirects after a form, with a notice for the page that they lead to.

use actix_web::HttpResponse;
use actix_web::cookie::{Cookie, SameSite, time};
use actix_web::http::header::{CACHE_CONTROL, LOCATION};

/// The cookie that carries a notice to the next page. The page that shows the notice removes the cookie. If no page
/// does, the cookie expires after `NOTICE_LIFETIME_S` seconds.
pub(crate) const NOTICE_COOKIE: &str = "notice";
const NOTICE_LIFETIME_S: i64 = 60;

/// Leads the browser to another page, which shows the notice.
pub(crate) fn go_to(path: &str, notice: &str) -> HttpResponse {
    let mut answer = redirect(path);
    let text: String = url::form_urlencoded::byte_serialize(notice.as_bytes()).collect();
    let cookie = notice_cookie(text).max_age(time::Duration::seconds(NOTICE_LIFETIME_S));
    // The text is encoded, so it is always a valid cookie.
    let _ = answer.add_cookie(&cookie.finish());
    answer
}

/// Leads the browser to another page, which it asks for with GET.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, path))
        .insert_header((CACHE_CONTROL, "no-store"))
        .finish()
}

/// Removes the notice from the browser, so that no second page shows it.
pub(crate) fn remove_notice(answer: &mut HttpResponse) {
    let mut cookie = notice_cookie(String::new()).finish();
    cookie.make_removal();
    // An empty text is a valid cookie.
    let _ = answer.add_cookie(&cookie);
}

fn notice_cookie(text: String) -> actix_web::cookie::CookieBuilder<'static> {
    Cookie::build(NOTICE_COOKIE, text)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
}
