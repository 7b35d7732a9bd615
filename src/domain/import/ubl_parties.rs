//! Compares the parties of a UBL document with the account that imports it. The imported invoice is issued by the
//! account. So a document that another party issued to the account is refused, and a document between other parties
//! gives a warning.

use trade_document::{Party, TradeDocument};

use crate::domain::invoice::ubl_parts::counterparty;
use crate::domain::kernel::codes::is_self_billed;
use crate::domain::party::Taxpayer;

/// The account that imports a file.
#[derive(Debug, Clone)]
pub struct ImportAccount {
    pub service_id: String,
    pub tin: String,
    pub name: String,
}

impl From<&Taxpayer> for ImportAccount {
    fn from(taxpayer: &Taxpayer) -> Self {
        Self {
            service_id: taxpayer.service_id.clone(),
            tin: taxpayer.tin.clone(),
            name: taxpayer.name.clone(),
        }
    }
}

/// The parties of a document by their roles. In a self-billed document the buyer is the issuer.
#[derive(Debug, Clone)]
pub struct UblParties {
    is_self_billed: bool,
    issuer: Party,
    counterparty: Party,
}

/// Returns the party that becomes the customer of the invoice, to be changed.
pub(super) fn counterparty_mut(document: &mut TradeDocument) -> &mut Party {
    if is_self_billed(&document.document_type.code) {
        &mut document.supplier
    } else {
        &mut document.customer
    }
}

impl UblParties {
    pub(super) fn new(document: &TradeDocument) -> Self {
        let is_self_billed = is_self_billed(&document.document_type.code);
        let issuer = if is_self_billed {
            &document.customer
        } else {
            &document.supplier
        };
        Self {
            is_self_billed,
            issuer: issuer.clone(),
            counterparty: counterparty(document).clone(),
        }
    }

    /// Compares the issuer of the document with the account. Returns a warning if the issuer is another party. Fails
    /// with a sentence if another party issued the document to the account.
    pub(super) fn compare(&self, account: &ImportAccount) -> Result<Option<String>, String> {
        let RoleWords {
            issuer,
            counterparty,
        } = self.role_words();
        let has_own_tin = |party: &Party| {
            let tin = party.tin.as_deref();
            tin.is_some_and(|tin| is_same_tin(tin, &account.tin))
        };
        let is_own = has_own_tin(&self.issuer) || is_same_name(&self.issuer.name, &account.name);
        let name = describe(&self.issuer);
        if has_own_tin(&self.counterparty) && !has_own_tin(&self.issuer) {
            let name = name.unwrap_or_else(|| "not named".to_owned());
            let kind = if self.is_self_billed {
                "a sale that its buyer bills"
            } else {
                "a purchase"
            };
            return Err(format!(
                "The file is {kind}: its {counterparty} has the TIN of this account, and its {issuer} is {name}; only \
                 documents that this account issues are imported."
            ));
        }
        Ok(name.filter(|_| !is_own).map(|name| {
            format!(
                "The {issuer} of the file is {name}, not this account: the invoice is one of this account now."
            )
        }))
    }

    fn role_words(&self) -> RoleWords {
        if self.is_self_billed {
            RoleWords {
                issuer: "customer",
                counterparty: "supplier",
            }
        } else {
            RoleWords {
                issuer: "supplier",
                counterparty: "customer",
            }
        }
    }
}

/// The words of UBL for the roles of the two parties.
struct RoleWords {
    issuer: &'static str,
    counterparty: &'static str,
}

/// Returns the name and the TIN of a party as one text; `None` if it has neither.
fn describe(party: &Party) -> Option<String> {
    let name = Some(party.name.trim()).filter(|name| !name.is_empty());
    let tin = party.tin.as_deref().map(str::trim);
    match (name, tin.filter(|tin| !tin.is_empty())) {
        (Some(name), Some(tin)) => Some(format!("{name} (TIN {tin})")),
        (Some(name), None) => Some(name.to_owned()),
        (None, Some(tin)) => Some(format!("TIN {tin}")),
        (None, None) => None,
    }
}

/// True if two tax numbers are the same, ignoring blanks, hyphens and a country prefix.
fn is_same_tin(first: &str, second: &str) -> bool {
    let first = bare_tin(first);
    !first.is_empty() && first == bare_tin(second)
}

fn bare_tin(tin: &str) -> String {
    let bare: String = tin
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .collect();
    let has_country = bare.len() > 2
        && bare
            .bytes()
            .take(2)
            .all(|letter| letter.is_ascii_alphabetic())
        && bare.as_bytes()[2].is_ascii_digit();
    if has_country {
        bare[2..].to_owned()
    } else {
        bare
    }
}

/// True if two names are the same, ignoring case, blanks and punctuation.
fn is_same_name(first: &str, second: &str) -> bool {
    let bare = |name: &str| -> String {
        let letters = name.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let first = bare(first);
    !first.is_empty() && first == bare(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_stranger_is_told_and_one_issued_to_the_account_is_refused() {
        let account = ImportAccount {
            service_id: "94AD90FB".to_owned(),
            tin: "12345678-0001".to_owned(),
            name: "Dangoyaro Mills Ltd.".to_owned(),
        };
        let party = |name: &str, tin: &str| Party {
            name: name.to_owned(),
            tin: Some(tin.to_owned()).filter(|tin| !tin.is_empty()),
            ..Party::default()
        };
        let own = || party("Mills", "12345678-0001");
        let other = || party("Acme", "99999999-0001");
        let warned = |text: &str| Ok(Some(text.to_owned()));
        let refused = |text: &str| Err(text.to_owned());
        for (is_self_billed, issuer, counterparty, expected) in [
            (false, own(), other(), Ok(None)),
            (false, party("", "NG 12345678 0001"), other(), Ok(None)),
            (false, party("", "ng123456780001"), other(), Ok(None)),
            (false, party("DANGOYARO MILLS, LTD", ""), other(), Ok(None)),
            (false, party("", ""), other(), Ok(None)),
            (false, own(), own(), Ok(None)),
            (
                false,
                other(),
                party("Buyer", ""),
                warned("The supplier of the file is Acme (TIN 99999999-0001), not"),
            ),
            (
                false,
                party("Acme", ""),
                other(),
                warned("The supplier of the file is Acme, not"),
            ),
            (
                false,
                party("", "77"),
                other(),
                warned("The supplier of the file is TIN 77, not"),
            ),
            (
                false,
                other(),
                party("", "NG12345678-0001"),
                refused(
                    "The file is a purchase: its customer has the TIN of this account, and its supplier is Acme (TIN",
                ),
            ),
            (
                false,
                party("", ""),
                own(),
                refused("The file is a purchase: its customer has"),
            ),
            (true, own(), other(), Ok(None)),
            (
                true,
                other(),
                party("Seller", "5"),
                warned("The customer of the file is Acme (TIN"),
            ),
            (
                true,
                other(),
                own(),
                refused("The file is a sale that its buyer bills: its supplier has"),
            ),
        ] {
            let parties = UblParties {
                is_self_billed,
                issuer,
                counterparty,
            };
            let found = parties.compare(&account);
            let is_expected = match (&found, &expected) {
                (Ok(None), Ok(None)) => true,
                (Ok(Some(found)), Ok(Some(start))) | (Err(found), Err(start)) => {
                    found.starts_with(start) && found.ends_with('.')
                }
                _ => false,
            };
            assert!(is_expected, "{parties:?}: {found:?}");
        }
    }
}
