//! The texts and codes that the writer puts into every document and by which the reader knows them again.

use trade_document::ItemKind;

/// The specification that the written documents follow (EN 16931, BT-24).
pub(crate) const CUSTOMIZATION: &str = "urn:cen.eu:en16931:2017";
/// The description of the reference that holds the IRN. The element that UBL has for it, `cbc:UUID`, is not part of EN
/// 16931.
pub(crate) const IRN_DESCRIPTION: &str = "IRN";
/// The description of the reference that holds the currency of the tax if the document does not state the tax in it.
pub(crate) const TAX_CURRENCY_DESCRIPTION: &str = "Tax currency (BT-6)";
/// The property of an item that says whether it is a product or a service. The writer adds it if a reader could not
/// tell from the unit.
pub(crate) const ITEM_TYPE: &str = "Item type";
pub(crate) const ITEM_TYPES: [(&str, ItemKind); 2] = [
    ("PRODUCT", ItemKind::Product),
    ("SERVICE", ItemKind::Service),
];
/// The lists of UNTDID 7143 that contain the classification of products (Harmonized System) and of services.
pub(crate) const PRODUCT_LIST: &str = "HS";
pub(crate) const SERVICE_LIST: &str = "ZZZ";
/// The codes of a discount and of a fee without a reason in words: UNTDID 5189 (discount) and 7161
/// (mutually defined).
pub(crate) const DISCOUNT_CODE: &str = "95";
pub(crate) const FEE_CODE: &str = "ZZZ";
