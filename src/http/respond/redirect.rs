//! Redirects after a form, with a notice for the page that they lead to.

use actix_web::HttpResponse;
use actix_web::cookie::{Cookie, SameSite, time};
use actix_web::http::header::{CACHE_CONTROL, HeaderValue, LOCATION, SET_COOKIE};

/// The cookie that carries a notice to the next page. The page that shows the notice removes the cookie. If no page
/// does, the cookie expires after `NOTICE_LIFETIME_S` seconds.
const NOTICE_COOKIE: &str = "notice";
/// The name of the notice cookie in production. A browser accepts it only from this host and over TLS, so no other host
/// can put a sentence on a page.
const SECURE_NOTICE_COOKIE: &str = "__Host-notice";
const NOTICE_LIFETIME_S: i64 = 60;
/// The maximum length of an encoded notice. Browsers drop a cookie of more than 4,096 bytes, including its name and
/// attributes (RFC 6265, section 6.1).
const NOTICE_BYTES_MAX: usize = 3_600;
/// The character `…`, encoded, which ends a notice that was cut.
const ELLIPSIS: &str = "%E2%80%A6";

/// Redirects the browser to another page, which shows the notice.
pub(crate) fn go_to(path: &str, notice: &str) -> HttpResponse {
    let mut answer = redirect(path);
    add_notice(&mut answer, notice);
    answer
}

/// Adds a notice for the page that a redirect leads to.
pub(crate) fn add_notice(answer: &mut HttpResponse, notice: &str) {
    let cookie =
        notice_cookie(encode_notice(notice)).max_age(time::Duration::seconds(NOTICE_LIFETIME_S));
    // The text is encoded, so it is always a valid cookie.
    let _ = answer.add_cookie(&cookie.finish());
}

/// Encodes a notice for its cookie, and cuts it where the browser would drop the cookie. A space is `%20`: actix
/// decodes percent signs, but not `+`.
fn encode_notice(notice: &str) -> String {
    let mut text = String::new();
    for character in notice.chars() {
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).as_bytes();
        let encoded: String = url::form_urlencoded::byte_serialize(bytes).collect();
        let encoded = encoded.replace('+', "%20");
        if text.len() + encoded.len() > NOTICE_BYTES_MAX {
            text.push_str(ELLIPSIS);
            break;
        }
        text.push_str(&encoded);
    }
    text
}

/// Redirects the browser with 303, so that it requests the other page with GET.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, path))
        .insert_header((CACHE_CONTROL, "no-store"))
        .finish()
}

/// Returns the name of the notice's cookie. `is_secure` is true if browsers use TLS.
pub(crate) fn notice_cookie_name(is_secure: bool) -> &'static str {
    if is_secure {
        SECURE_NOTICE_COOKIE
    } else {
        NOTICE_COOKIE
    }
}

/// Restricts the notice cookie of a response, if there is one, to TLS: gives it the name and the attributes of a cookie
/// that browsers send over TLS only.
pub(crate) fn restrict_notice_to_tls(answer: &mut HttpResponse) {
    let headers = answer.headers_mut();
    let cookies: Vec<_> = headers.remove(SET_COOKIE).collect();
    for cookie in cookies {
        let secure_cookie = to_secure_notice(&cookie);
        headers.append(SET_COOKIE, secure_cookie.unwrap_or(cookie));
    }
}

/// Returns the cookie of a notice under its name for TLS only, with the value still encoded; `None` for any other
/// cookie.
fn to_secure_notice(cookie: &HeaderValue) -> Option<HeaderValue> {
    let text = cookie.to_str().ok()?.to_owned();
    let mut cookie = Cookie::parse(text).ok()?;
    if cookie.name() != NOTICE_COOKIE {
        return None;
    }
    cookie.set_name(SECURE_NOTICE_COOKIE);
    cookie.set_secure(true);
    HeaderValue::from_str(&cookie.to_string()).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_over_tls_has_the_attributes_of_a_session() {
        let set_cookies = |answer: &HttpResponse| {
            let cookies = answer.headers().get_all(SET_COOKIE);
            let texts: Vec<_> = cookies
                .map(|cookie| cookie.to_str().unwrap().to_owned())
                .collect();
            texts
        };
        let mut removal = HttpResponse::Ok().finish();
        remove_notice(&mut removal);
        for (mut answer, value) in [
            (go_to("/a", "Saved; sent"), "Saved%3B%20sent"),
            (removal, ""),
        ] {
            assert!(set_cookies(&answer)[0].starts_with(&format!("notice={value};")));
            restrict_notice_to_tls(&mut answer);
            let cookies = set_cookies(&answer);
            assert_eq!(cookies.len(), 1);
            let cookie = &cookies[0];
            let start = format!("__Host-notice={value};");
            assert!(cookie.starts_with(&start), "{cookie}");
            for attribute in [
                "HttpOnly",
                "SameSite=Strict",
                "Secure",
                "Path=/",
                "Max-Age=",
            ] {
                assert!(cookie.contains(attribute), "{cookie}");
            }
        }
        let mut without_notice = redirect("/a");
        restrict_notice_to_tls(&mut without_notice);
        assert!(set_cookies(&without_notice).is_empty());
    }

    #[test]
    fn a_long_notice_is_cut_where_a_browser_would_drop_its_cookie() {
        let long = "Ọ".repeat(2_000);
        let cases = [
            ("", ""),
            ("Saved & sent", "Saved & sent"),
            (long.as_str(), "…"),
        ];
        for (notice, end) in cases {
            let cookie = notice_cookie(encode_notice(notice)).finish();
            assert!(cookie.to_string().len() < 4_000, "{notice}");
            let query = format!("notice={}", cookie.value());
            let (_, decoded) = url::form_urlencoded::parse(query.as_bytes())
                .next()
                .unwrap();
            assert!(decoded.ends_with(end), "{decoded}");
        }
    }
}
