//! SOAP 1.1, document/literal: one element, named after the method, with the members of the notification.
//! <https://www.w3.org/TR/2000/NOTE-SOAP-20000508/>

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use super::xml;

pub(super) const CONTENT_TYPE: &str = "text/xml; charset=utf-8";
const ENVELOPE_START: &str = concat!(
    r#"<?xml version="1.0" encoding="utf-8"?>"#,
    r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/""#,
    r#" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soap:Body>"#,
);
const ENVELOPE_END: &str = "</soap:Body></soap:Envelope>";

/// Derives a SOAP action from the namespace and the method, for an integration that names none.
pub fn default_action(namespace: &str, method: &str) -> String {
    let between = match namespace {
        urn if urn.starts_with("urn:") => ":",
        url if url.ends_with(['/', '#']) => "",
        _ => "/",
    };
    format!("{namespace}{between}{method}")
}

/// Returns true if the method's name is a valid name of an XML element.
pub fn is_method_name(name: &str) -> bool {
    xml::is_name(name)
}

pub(super) fn render(namespace: &str, method: &str, notification: &str) -> String {
    let event: Value = strict_json::from_trusted(notification).unwrap_or_default();
    let mut body = ENVELOPE_START.to_owned();
    body.extend(["<", method, " xmlns=\""]);
    xml::write_escaped(namespace, &mut body);
    body.push_str("\">");
    xml::write_children(&event, &mut body);
    body.extend(["</", method, ">", ENVELOPE_END]);
    body
}

/// Returns true if the response is an envelope without a fault. The response may be cut off after the first start tag
/// in the SOAP body.
pub(super) fn is_accepted(answer: &str) -> bool {
    let mut reader = Reader::from_str(answer.trim_start_matches('\u{feff}'));
    let mut depth = 0_usize;
    let mut is_body = false;
    loop {
        let (element, is_open) = match reader.read_event() {
            Ok(Event::Start(element)) => (element, true),
            Ok(Event::Empty(element)) => (element, false),
            Ok(Event::End(_)) if depth == 2 && is_body => return true,
            Ok(Event::End(_)) => {
                depth = depth.saturating_sub(1);
                continue;
            }
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => continue,
        };
        let name = element.local_name();
        match (depth, name.as_ref()) {
            (0, "Envelope") => {}
            (0, _) => return false,
            (1, "Body") if !is_open => return true,
            (1, name) => is_body = name == "Body",
            (2, name) if is_body => return name != "Fault",
            _ => {}
        }
        depth += usize::from(is_open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_the_element_of_a_method() {
        let notification =
            r#"{"id":"e1","data":{"irn":"I&1","lines":[{"n":1.50},{"n":2}],"note":null}}"#;
        let expected = concat!(
            r#"<?xml version="1.0" encoding="utf-8"?>"#,
            r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/""#,
            r#" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soap:Body>"#,
            r#"<Notify xmlns="urn:a&amp;b"><data><irn>I&amp;1</irn><lines><item><n>1.50</n></item>"#,
            r#"<item><n>2</n></item></lines><note xsi:nil="true"/></data><id>e1</id></Notify>"#,
            r"</soap:Body></soap:Envelope>",
        );
        assert_eq!(render("urn:a&b", "Notify", notification), expected);
    }

    #[test]
    fn the_default_action_joins_namespace_and_method() {
        for (namespace, action) in [
            ("urn:erp", "urn:erp:Notify"),
            ("http://tempuri.org/", "http://tempuri.org/Notify"),
            ("http://erp.example/ws", "http://erp.example/ws/Notify"),
            ("http://erp.example/ws#", "http://erp.example/ws#Notify"),
        ] {
            assert_eq!(default_action(namespace, "Notify"), action);
        }
    }

    #[test]
    fn a_fault_in_an_envelope_is_not_acceptance() {
        let envelope = |head: &str, body: &str| {
            format!(
                r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">{head}{body}</s:Envelope>"#
            )
        };
        for (answer, taken) in [
            (envelope("", "<s:Body><Ok/></s:Body>"), true),
            (
                envelope("", "<s:Body><NotifyResponse>1</NotifyResponse></s:Body>"),
                true,
            ),
            (envelope("", "<s:Body></s:Body>"), true),
            (envelope("", "<s:Body/>"), true),
            (
                envelope("<s:Header><Fault/></s:Header>", "<s:Body><Ok/></s:Body>"),
                true,
            ),
            (envelope("", "<s:Body><Ok><s:Fault/></Ok></s:Body>"), true),
            (
                format!(
                    "\u{feff}<?xml version=\"1.0\"?>\n{}",
                    envelope("", "<s:Body/>")
                ),
                true,
            ),
            (
                envelope(
                    "",
                    "<s:Body><s:Fault><faultcode>s:Server</faultcode></s:Fault></s:Body>",
                ),
                false,
            ),
            (envelope("", "<s:Body>\n <s:Fault/></s:Body>"), false),
            (envelope("<s:Header/>", ""), false),
            ("<html><body>Sign in</body></html>".to_owned(), false),
            ("not xml".to_owned(), false),
            ("<s:Envelope><s:Body>".to_owned(), false),
            ("<s:Envelope><s:Body><Ok><a>cut".to_owned(), true),
        ] {
            assert_eq!(is_accepted(&answer), taken, "{answer}");
        }
    }
}
