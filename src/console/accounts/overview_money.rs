//! The money on the overview: what is outstanding and overdue, and the VAT of the month, each by currency.

use std::collections::BTreeMap;

use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::owed::totals_by_currency;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::money::Amount;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageFields, PageStart,
};
use crate::store::invoices::owed;

/// The maximum number of unpaid invoices that are summed up. Those that were due first are taken.
const OWED_MAX: u64 = 2_000;
/// The maximum number of submitted invoices of the month whose VAT is summed up. If there are more, the page links to
/// the report instead.
const VAT_MAX: u64 = 300;
/// The maximum number of invoices of the month, drafts included, among which the submitted ones are searched.
const SEARCHED_MAX: u64 = 5_000;

/// The sums in one currency.
pub(super) struct MoneyLine {
    pub(super) currency: String,
    pub(super) outstanding: Amount,
    pub(super) overdue: Amount,
    /// True if the overdue amount links to the list of overdue invoices. It does so only if the account has no other
    /// currency, because the list has no filter by currency.
    pub(super) is_overdue_listed: bool,
    /// `None` if the month has too many invoices, or one that is too long for a list. The page then links to the
    /// report.
    pub(super) vat: Option<Amount>,
}

pub(super) struct MoneySummary {
    pub(super) lines: Vec<MoneyLine>,
    /// True if only the invoices that were due first were summed up.
    pub(super) is_cut: bool,
}

#[derive(Default)]
struct CurrencyTotals {
    outstanding: Amount,
    overdue: Amount,
    vat: Amount,
}

pub(super) async fn load(state: &ApiState, taxpayer: TaxpayerId) -> Result<MoneySummary, ApiError> {
    let today = state.today();
    let owed = owed::load_owed_invoices(&state.store, taxpayer, OWED_MAX).await?;
    let catalog = state.catalog.get();
    let totals = totals_by_currency(&owed.invoices, &catalog, today);
    let mut sums: BTreeMap<_, _> = totals
        .into_iter()
        .map(|total| {
            let sums = CurrencyTotals {
                outstanding: total.owed,
                overdue: total.overdue,
                vat: Amount::ZERO,
            };
            (total.currency, sums)
        })
        .collect();
    let is_vat_known = add_vat_this_month(state, taxpayer, &mut sums).await?;
    let is_only_currency = sums.len() == 1;
    let line = |(currency, sum): (String, CurrencyTotals)| {
        let digits = catalog.currency_digits(&currency);
        MoneyLine {
            is_overdue_listed: is_only_currency && !sum.overdue.is_zero(),
            outstanding: sum.outstanding.with_digits(digits),
            overdue: sum.overdue.with_digits(digits),
            vat: is_vat_known.then(|| sum.vat.with_digits(digits)),
            currency,
        }
    };
    Ok(MoneySummary {
        lines: sums.into_iter().map(line).collect(),
        is_cut: owed.is_cut,
    })
}

/// Adds to `sums` the VAT of this month's signed sales: that of invoices, minus that of credit notes. Returns false if
/// the VAT is not known, because there are more than `VAT_MAX` submitted invoices, more than `SEARCHED_MAX` invoices,
/// or one that is too long for a list.
async fn add_vat_this_month(
    state: &ApiState,
    taxpayer: TaxpayerId,
    sums: &mut BTreeMap<String, CurrencyTotals>,
) -> Result<bool, ApiError> {
    let today = state.today();
    let mut list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            date_from: Some(today.first_of_month()),
            date_to: Some(today.last_of_month()),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::BY_INVOICE_DATE,
    };
    let store = &state.store;
    if list.count_up_to(store, SEARCHED_MAX + 1).await? > SEARCHED_MAX {
        return Ok(false);
    }
    // Invoices that were never sent to the authority are not signed, so they do not count towards the limit.
    let sent = AuthorityStatus::ALL.iter().copied();
    list.filters.authority_statuses = sent
        .filter(|status| *status != AuthorityStatus::Pending)
        .collect();
    let count = list.count_up_to(store, VAT_MAX + 1).await?;
    if count > VAT_MAX {
        return Ok(false);
    }
    let part = PageBounds {
        start: PageStart::At(0),
        limit: VAT_MAX,
    };
    let page = list
        .page_with_known_total(store, part, count, PageFields::All)
        .await?;
    let catalog = state.catalog.get();
    let invoices = page.invoices.iter();
    // An invoice that was cancelled here while the authority signed it counts, too, because it is in force.
    let signed_sales =
        invoices.filter(|invoice| invoice.authority.signed && invoice.kind().is_sale());
    for invoice in signed_sales {
        let breakdown = Breakdown::from_invoice(invoice, &catalog).map_err(ApiError::internal)?;
        let tax = breakdown.tax().unwrap_or(Amount::ZERO);
        let sum = sums.entry(invoice.currency.clone()).or_default();
        let total = if invoice.is_credit_note() {
            sum.vat.minus(tax)
        } else {
            sum.vat.plus(tax)
        };
        sum.vat = total.unwrap_or(sum.vat);
    }
    Ok(page.long_invoices.is_empty())
}
