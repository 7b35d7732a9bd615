//! Resolves the unknown outcome of a call, made by this process or an earlier one. A signature under the run's IRN is
//! the run's success only if the authority's copy contains the content that the run has sent.

use authority_client::AuthorityFailure;
use serde_json::Value;

use crate::actors::pipeline::remote_status::RemoteStatus;
use crate::actors::pipeline::step_executor::{StepError, StepExecutor};
use crate::domain::pipeline::signed_copy::{
    self, SIGNED_OTHERWISE_MESSAGE, UNREADABLE_COPY_MESSAGE,
};
use crate::domain::pipeline::{ResolvedBy, Run};

/// The way in which we learnt that a call took effect; `None` if it took no effect. An error means that this is still
/// unknown, or that the authority has signed other content.
pub(super) type Resolution = Result<Option<ResolvedBy>, StepError>;

impl StepExecutor<'_> {
    /// Asks the authority for the invoice's status, from which `shows_effect` decides whether the call took effect.
    pub(super) async fn resolve_by_status(
        &self,
        run: &Run,
        shows_effect: impl Fn(&RemoteStatus) -> bool,
    ) -> Resolution {
        let status = self
            .find_effect_of_earlier_call(run, shows_effect)
            .await
            .map_err(StepError::Call)?;
        Ok(status.map(|status| status.by))
    }

    /// Asks whether the authority has signed the document of this run. Fails with `Refused` if the authority has signed
    /// other content under the run's IRN.
    pub(super) async fn resolve_signature(&self, run: &Run) -> Resolution {
        let Some(status) = self
            .find_effect_of_earlier_call(run, |_| true)
            .await
            .map_err(StepError::Call)?
        else {
            return Ok(None);
        };
        let is_ours = match self.download_signed_copy(run).await? {
            Ok(copy) => signed_copy::has_sent_values(&copy, &run.document()),
            Err(_) if are_signed_dates_different(run, &status) => false,
            Err(reason) => return Err(unreadable_copy_error(&reason)),
        };
        if is_ours {
            Ok(Some(ResolvedBy::Download))
        } else {
            Err(StepError::Refused(SIGNED_OTHERWISE_MESSAGE.to_owned()))
        }
    }

    /// Downloads and decrypts the authority's signed copy. The outer error means that a later try may succeed, the
    /// inner error that the copy is unreadable.
    async fn download_signed_copy(&self, run: &Run) -> Result<Result<Value, String>, StepError> {
        let irn = run.irn.as_str();
        match self.authority.download(irn).await {
            Ok(document) => {
                let copy = self.authority.decrypt(irn, &document);
                Ok(copy.map_err(|error| error.to_string()))
            }
            Err(AuthorityFailure::Refused { message, .. }) => Ok(Err(message)),
            Err(failure) => Err(StepError::Call(failure)),
        }
    }
}

/// True if the signed document has other dates than the run's document, which shows that it is another document.
fn are_signed_dates_different(run: &Run, status: &RemoteStatus) -> bool {
    let dates = (status.issue_date.as_deref(), status.due_date.as_deref());
    run.payload
        .submission()
        .and_then(|sent| signed_copy::has_sent_dates(sent, dates.0, dates.1))
        == Some(false)
}

fn unreadable_copy_error(reason: &str) -> StepError {
    StepError::NeedsOperator(format!(
        "{UNREADABLE_COPY_MESSAGE} ({reason}), so it is not known whether it is this one: see that it can be downloaded, \
         then resume the run"
    ))
}

/// Returns how we learnt that a call without an answer took effect. If the call took no effect, or if the authority
/// could not be asked, returns the call's failure `unknown`, so that the authority is asked again before the call is
/// repeated. Any other error in `known` is returned as it is.
pub(super) fn resolve_unknown(
    unknown: AuthorityFailure,
    known: Resolution,
) -> Result<ResolvedBy, StepError> {
    match known {
        Ok(Some(by)) => Ok(by),
        Ok(None) | Err(StepError::Call(_)) => Err(unknown.into()),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use authority_client::testing::{Behaviour, PUBLIC_PART, Server, encrypt, http};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::actors::pipeline::step_executor::ExecutedStep;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, RunPayload, RunRequest, Step};
    use crate::store::testing::{TestStore, add_taxpayer, stores};

    type CannedAnswer = (&'static str, Vec<u8>);

    const IRN: &str = "INV1-94AD90FB-20260115";
    const BUSY: &str = r#"{"code":400,"message":"unable to complete this operation at this time, kindly try again later"}"#;
    const SEARCH: &str = "/invoice/7?";
    const CONFIRM: &str = "/invoice/confirm/";
    const DOWNLOAD: &str = "/invoice/download/";

    fn run(operation: Operation) -> Run {
        let document = json!({
            "irn": IRN, "business_id": "7", "issue_date": "2026-01-15", "due_date": "2026-02-15",
            "payment_status": "PAID", "remark": null, "legal_monetary_total": { "payable_amount": 1075 },
        });
        let payload = RunPayload::from_document(operation, document).unwrap();
        let request = RunRequest {
            irn: Irn::parse(IRN).unwrap(),
            payload,
        };
        Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
    }

    fn says(part: &'static str, status: u16, body: &str) -> CannedAnswer {
        (part, http(status, "", body))
    }

    fn answer_with_data(part: &'static str, data: &Value) -> CannedAnswer {
        says(part, 200, &json!({ "data": data }).to_string())
    }

    fn confirm_answer(issue_date: &str, transmitted: bool, payment_status: &str) -> CannedAnswer {
        let answer = json!({
            "issue_date": issue_date, "due_date": null, "payment_status": payment_status,
            "transmitted": transmitted, "delivered": false,
        });
        answer_with_data(CONFIRM, &answer)
    }

    fn signed_answer() -> CannedAnswer {
        confirm_answer("2026-01-15", false, "PENDING")
    }

    fn silent(part: &'static str) -> CannedAnswer {
        says(part, 503, "")
    }

    fn unknown_there(part: &'static str) -> CannedAnswer {
        says(part, 404, r#"{"message":"invoice not found"}"#)
    }

    fn search_answer(entry_status: &str) -> CannedAnswer {
        let row = json!({
            "irn": IRN.to_lowercase(), "issue_date": "2026-01-15", "entry_status": entry_status,
            "payment_status": "PAID",
        });
        answer_with_data(SEARCH, &json!({ "items": [{ "irn": "OTHER" }, row] }))
    }

    fn nothing_found() -> CannedAnswer {
        answer_with_data(
            SEARCH,
            &json!({ "items": [{ "irn": "INV2-94AD90FB-20260115", "payment_status": "PAID" }] }),
        )
    }

    fn copy_with_payable(payable: i64) -> CannedAnswer {
        copy_under(IRN, payable)
    }

    fn another_copy() -> CannedAnswer {
        copy_under("INV2-94AD90FB-20260115", 1075)
    }

    fn copy_under(irn: &str, payable: i64) -> CannedAnswer {
        let mut copy = run(Operation::Submit).document();
        copy["irn"] = json!(irn);
        copy["legal_monetary_total"]["payable_amount"] = json!(payable);
        copy["payment_status"] = json!("PENDING");
        copy["sync_date"] = json!("2026-01-16");
        let (iv, bytes) = encrypt(copy.to_string().as_bytes());
        answer_with_data(
            DOWNLOAD,
            &json!({ "iv_hex": iv, "pub": PUBLIC_PART, "data": URL_SAFE.encode(bytes) }),
        )
    }

    fn undecryptable() -> CannedAnswer {
        answer_with_data(
            DOWNLOAD,
            &json!({ "iv_hex": "00", "pub": PUBLIC_PART, "data": "AAAA" }),
        )
    }

    /// Executes a step against a server with these answers. Returns the result as a short text, and the paths that were
    /// called.
    async fn call(
        test: &TestStore,
        run: &Run,
        step: Step,
        resuming: bool,
        answers: Vec<CannedAnswer>,
    ) -> (String, Vec<String>) {
        call_at(
            &Server::start(Behaviour::ByPath(answers)).await,
            test,
            run,
            step,
            resuming,
        )
        .await
    }

    async fn call_at(
        server: &Server,
        test: &TestStore,
        run: &Run,
        step: Step,
        resuming: bool,
    ) -> (String, Vec<String>) {
        let authority = server.authority();
        let caller = StepExecutor {
            authority: &authority,
            keys: None,
            store: &test.store,
        };
        let word = match caller
            .execute_step(run, step, resuming, Timestamp::UNIX_EPOCH)
            .await
        {
            Ok(ExecutedStep::Done { by, .. }) => by.to_string(),
            Ok(ExecutedStep::Unchanged(by)) => format!("unchanged, {by}"),
            Err(StepError::Refused(error)) if error == SIGNED_OTHERWISE_MESSAGE => {
                "other content".to_owned()
            }
            Err(StepError::Refused(error)) => format!("refused: {error}"),
            Err(StepError::NeedsOperator(_)) => "an operator is needed".to_owned(),
            Err(StepError::Call(AuthorityFailure::Unknown { .. })) => "unknown".to_owned(),
            Err(StepError::Call(AuthorityFailure::Retryable { .. })) => "retryable".to_owned(),
            Err(trouble) => format!("{trouble:?}"),
        };
        let path = |request: &String| {
            request
                .split(' ')
                .nth(1)
                .unwrap()
                .replace("/api/v1/invoice/", "")
        };
        (word, server.received_requests().iter().map(path).collect())
    }

    /// Returns a store with the taxpayer of the runs, whose business id is `7`.
    async fn one_store() -> TestStore {
        let test = stores().await.swap_remove(0);
        add_taxpayer(&test.store, 7, 1).await;
        test
    }

    /// Signs once for each case and compares the result. The server closes the connection without answering the call to
    /// sign, unless the case has an answer for `/invoice/sign`.
    async fn check_signing(cases: Vec<(Vec<CannedAnswer>, &str)>) {
        let test = one_store().await;
        for (answers, expected) in cases {
            let case = format!("{answers:?}");
            let (word, _) = call(&test, &run(Operation::Submit), Step::Sign, false, answers).await;
            assert_eq!(word, expected, "{case}");
        }
    }

    #[tokio::test]
    async fn a_signature_without_an_answer_is_resolved_by_the_signed_copy() {
        check_signing(vec![
            (vec![signed_answer(), copy_with_payable(1075)], "download"),
            (
                vec![signed_answer(), copy_with_payable(1076)],
                "other content",
            ),
            (vec![signed_answer(), silent(DOWNLOAD)], "unknown"),
            (
                vec![signed_answer(), says(DOWNLOAD, 200, "<xml/>")],
                "unknown",
            ),
            (
                vec![
                    signed_answer(),
                    says(DOWNLOAD, 200, r#"{"data":{"iv_hex":"00"}}"#),
                ],
                "unknown",
            ),
            (vec![signed_answer(), unknown_there(DOWNLOAD)], "unknown"),
            (
                vec![signed_answer(), undecryptable()],
                "an operator is needed",
            ),
            (
                vec![signed_answer(), another_copy()],
                "an operator is needed",
            ),
            (
                vec![
                    signed_answer(),
                    says(DOWNLOAD, 400, r#"{"message":"no download for you"}"#),
                ],
                "an operator is needed",
            ),
            (
                vec![
                    confirm_answer("2026-01-16", false, "PENDING"),
                    undecryptable(),
                ],
                "other content",
            ),
            (
                vec![confirm_answer("", false, "PENDING"), undecryptable()],
                "an operator is needed",
            ),
        ])
        .await;
    }

    #[tokio::test]
    async fn the_search_tells_of_a_signature_only_if_confirm_fails() {
        check_signing(vec![
            (
                vec![
                    unknown_there(CONFIRM),
                    search_answer("SIGNED"),
                    copy_with_payable(1075),
                ],
                "unknown",
            ),
            (
                vec![
                    silent(CONFIRM),
                    search_answer("SIGNED"),
                    copy_with_payable(1075),
                ],
                "download",
            ),
            (
                vec![
                    silent(CONFIRM),
                    search_answer("SIGNED"),
                    copy_with_payable(1),
                ],
                "other content",
            ),
            (
                vec![silent(CONFIRM), search_answer("SIGNED"), undecryptable()],
                "an operator is needed",
            ),
            (
                vec![silent(CONFIRM), search_answer("SIGNED"), silent(DOWNLOAD)],
                "unknown",
            ),
            (
                vec![
                    says(CONFIRM, 400, r#"{"message":"odd"}"#),
                    search_answer("SIGNED"),
                    copy_with_payable(1075),
                ],
                "download",
            ),
            (
                vec![silent(CONFIRM), nothing_found(), copy_with_payable(1075)],
                "unknown",
            ),
            (
                vec![silent(CONFIRM), silent(SEARCH), copy_with_payable(1075)],
                "unknown",
            ),
        ])
        .await;
    }

    #[tokio::test]
    async fn the_answer_to_a_signature_is_final_unless_it_is_busy() {
        check_signing(vec![
            (
                vec![
                    says("/invoice/sign", 400, BUSY),
                    signed_answer(),
                    copy_with_payable(1075),
                ],
                "download",
            ),
            (
                vec![says("/invoice/sign", 400, BUSY), unknown_there(CONFIRM)],
                "unknown",
            ),
            (
                vec![says("/invoice/sign", 201, r#"{"data":{"ok":true}}"#)],
                "answer",
            ),
            (
                vec![
                    says("/invoice/sign", 422, r#"{"message":"no"}"#),
                    signed_answer(),
                ],
                "refused: no",
            ),
        ])
        .await;
    }

    /// The first `confirm` says that the IRN is not signed, as if the authority's replica had not seen the signature
    /// yet.
    #[tokio::test]
    async fn a_refusal_is_checked_if_the_document_may_be_signed_already() {
        let test = one_store().await;
        let no = || says("/invoice/sign", 422, r#"{"message":"no"}"#);
        for (answers, expected) in [
            (
                vec![
                    unknown_there(CONFIRM),
                    signed_answer(),
                    copy_with_payable(1075),
                ],
                "download",
            ),
            (
                vec![
                    unknown_there(CONFIRM),
                    signed_answer(),
                    copy_with_payable(9),
                ],
                "other content",
            ),
            (
                vec![unknown_there(CONFIRM), signed_answer(), undecryptable()],
                "an operator is needed",
            ),
            (
                vec![unknown_there(CONFIRM), unknown_there(CONFIRM)],
                "refused: no",
            ),
            (
                vec![unknown_there(CONFIRM), silent(CONFIRM), silent(SEARCH)],
                "retryable",
            ),
        ] {
            let case = format!("{answers:?}");
            let answers = answers.into_iter().chain([no()]).collect();
            let server = Server::start(Behaviour::InTurn(answers)).await;
            let (word, paths) =
                call_at(&server, &test, &run(Operation::Submit), Step::Sign, true).await;
            assert_eq!(word, expected, "{case} {paths:?}");
        }
    }

    #[tokio::test]
    async fn a_signature_that_may_exist_is_asked_about_before_it_is_asked_for_again() {
        let test = one_store().await;
        let sign = says("/invoice/sign", 201, r#"{"data":{"ok":true}}"#);
        for (answers, expected, calls) in [
            (
                vec![signed_answer(), copy_with_payable(1075)],
                "download",
                2,
            ),
            (
                vec![signed_answer(), copy_with_payable(9)],
                "other content",
                2,
            ),
            (vec![unknown_there(CONFIRM), sign.clone()], "answer", 2),
            (
                vec![silent(CONFIRM), nothing_found(), sign.clone()],
                "retryable",
                2,
            ),
            (vec![silent(CONFIRM), silent(SEARCH), sign], "retryable", 2),
        ] {
            let case = format!("{answers:?}");
            let (word, paths) =
                call(&test, &run(Operation::Submit), Step::Sign, true, answers).await;
            assert_eq!(
                (word.as_str(), paths.len()),
                (expected, calls),
                "{case} {paths:?}"
            );
            assert_eq!(
                paths.contains(&"sign".to_owned()),
                expected == "answer",
                "{paths:?}"
            );
        }
    }

    #[tokio::test]
    async fn an_irn_that_is_signed_already_goes_on_as_signed_only_where_its_document_is_ours() {
        let test = one_store().await;
        let busy = || says("/irn/validate", 400, BUSY);
        for (answers, expected) in [
            (
                vec![busy(), signed_answer(), copy_with_payable(1075)],
                "download",
            ),
            (
                vec![busy(), signed_answer(), copy_with_payable(1)],
                "other content",
            ),
            (vec![busy(), unknown_there(CONFIRM)], "unknown"),
            (
                vec![
                    busy(),
                    silent(CONFIRM),
                    search_answer("TRANSMITTED"),
                    copy_with_payable(1075),
                ],
                "download",
            ),
            (vec![busy(), silent(CONFIRM), nothing_found()], "unknown"),
            (
                vec![says("/irn/validate", 400, r#"{"message":"no"}"#)],
                "refused: no",
            ),
        ] {
            let (word, _) = call(
                &test,
                &run(Operation::Submit),
                Step::IrnCheck,
                false,
                answers,
            )
            .await;
            assert_eq!(word, expected);
        }
        let found = Run {
            resolved_by: Some(ResolvedBy::Download),
            ..run(Operation::Submit)
        };
        let (word, paths) = call(&test, &found, Step::DataCheck, false, vec![]).await;
        assert_eq!(
            (word.as_str(), paths.len()),
            ("answer", 0),
            "what is signed needs no check"
        );
        let (word, paths) = call(
            &test,
            &found,
            Step::Sign,
            false,
            vec![signed_answer(), copy_with_payable(1075)],
        )
        .await;
        assert_eq!((word.as_str(), paths.len()), ("download", 2), "{paths:?}");
    }

    #[tokio::test]
    async fn a_signature_is_confirmed_by_either_witness_and_refused_by_none() {
        let test = one_store().await;
        for (answers, expected) in [
            (vec![signed_answer()], "answer"),
            (vec![silent(CONFIRM), search_answer("SIGNED")], "search"),
            (vec![silent(CONFIRM), nothing_found()], "retryable"),
        ] {
            let (word, _) = call(
                &test,
                &run(Operation::Submit),
                Step::Confirm,
                false,
                answers,
            )
            .await;
            assert_eq!(word, expected);
        }
        for answer in [
            unknown_there(CONFIRM),
            says(CONFIRM, 422, r#"{"message":"odd"}"#),
        ] {
            let (word, _) = call(
                &test,
                &run(Operation::Submit),
                Step::Confirm,
                false,
                vec![answer],
            )
            .await;
            assert!(word.starts_with("Call("), "{word}");
        }
    }

    #[tokio::test]
    async fn a_transmission_is_resolved_by_confirm_or_by_a_search() {
        let test = one_store().await;
        let transmit = "POST /api/v1/invoice/transmit/";
        let transmitted = || confirm_answer("2026-01-15", true, "PENDING");
        let again = || {
            says(
                transmit,
                400,
                r#"{"message":"invoice already transmitted"}"#,
            )
        };
        for (answers, resuming, expected) in [
            (vec![transmitted()], false, "confirm"),
            (vec![signed_answer()], false, "unknown"),
            (vec![again(), transmitted()], false, "confirm"),
            (vec![again(), signed_answer()], false, "unknown"),
            (
                vec![silent(CONFIRM), search_answer("TRANSMITTED")],
                false,
                "search",
            ),
            (
                vec![silent(CONFIRM), search_answer("SIGNED")],
                false,
                "unknown",
            ),
            (vec![silent(CONFIRM), nothing_found()], false, "unknown"),
            (vec![transmitted()], true, "confirm"),
            (
                vec![silent(CONFIRM), search_answer("DELIVERED")],
                true,
                "search",
            ),
            (
                vec![silent(CONFIRM), search_answer("SIGNED")],
                true,
                "retryable",
            ),
            (
                vec![
                    signed_answer(),
                    answer_with_data(transmit, &json!({ "ok": true })),
                ],
                true,
                "answer",
            ),
            (
                vec![signed_answer(), unknown_there(transmit)],
                true,
                "refused: invoice not found",
            ),
        ] {
            let case = format!("{answers:?}");
            let (word, _) = call(
                &test,
                &run(Operation::Transmit),
                Step::Send,
                resuming,
                answers,
            )
            .await;
            assert_eq!(word, expected, "{case}");
        }
        let offline = says(
            transmit,
            400,
            r#"{"message":"the access point is offline"}"#,
        );
        let (word, _) = call(
            &test,
            &run(Operation::Transmit),
            Step::Send,
            false,
            vec![offline],
        )
        .await;
        assert_eq!(word, r#"AccessPoint("the access point is offline")"#);
    }

    /// The first `confirm` shows no effect, as if the authority still worked on the earlier call, which had no answer.
    #[tokio::test]
    async fn a_refusal_is_checked_if_an_earlier_call_may_have_taken_effect() {
        let test = one_store().await;
        let transmitted = || confirm_answer("2026-01-15", true, "PENDING");
        let paid = || confirm_answer("2026-01-15", false, "PAID");
        for (operation, step, path, resuming, later, expected) in [
            (
                Operation::Transmit,
                Step::Send,
                "POST /api/v1/invoice/transmit/",
                true,
                vec![transmitted()],
                "confirm",
            ),
            (
                Operation::Transmit,
                Step::Send,
                "POST /api/v1/invoice/transmit/",
                true,
                vec![signed_answer()],
                "refused: no",
            ),
            (
                Operation::Payment,
                Step::Payment,
                "/invoice/update/",
                true,
                vec![paid()],
                "confirm",
            ),
            (
                Operation::Payment,
                Step::Payment,
                "/invoice/update/",
                true,
                vec![signed_answer()],
                "refused: no",
            ),
            (
                Operation::Payment,
                Step::Payment,
                "/invoice/update/",
                true,
                vec![silent(CONFIRM), silent(SEARCH)],
                "retryable",
            ),
            (
                Operation::Payment,
                Step::Payment,
                "/invoice/update/",
                false,
                vec![paid()],
                "refused: no",
            ),
        ] {
            let case = format!("{operation} {resuming} {later:?}");
            let refusal = says(path, 409, r#"{"message":"no"}"#);
            let answers = [signed_answer()].into_iter().chain(later).chain([refusal]);
            let server = Server::start(Behaviour::InTurn(answers.collect())).await;
            let (word, paths) = call_at(&server, &test, &run(operation), step, resuming).await;
            assert_eq!(word, expected, "{case} {paths:?}");
        }
    }

    #[tokio::test]
    async fn a_transmission_that_happened_makes_questions_about_the_moment_moot() {
        let test = one_store().await;
        let lost = run(Operation::Transmit).begin_attempt(Step::Send, Timestamp::UNIX_EPOCH);
        for step in [Step::Health, Step::AccessPoints] {
            let answers = vec![confirm_answer("2026-01-15", true, "PENDING")];
            let (word, paths) = call(&test, &lost, step, false, answers).await;
            assert_eq!((word.as_str(), paths.len()), ("confirm", 1), "{paths:?}");
            let (word, paths) = call(
                &test,
                &lost,
                step,
                false,
                vec![silent(CONFIRM), silent(SEARCH)],
            )
            .await;
            assert_eq!((word.as_str(), paths.len()), ("retryable", 2), "{paths:?}");
        }
        let answers = vec![
            signed_answer(),
            answer_with_data("self-health-check", &json!({ "ok": true })),
        ];
        let (word, paths) = call(&test, &lost, Step::Health, false, answers).await;
        assert_eq!((word.as_str(), paths.len()), ("answer", 2), "{paths:?}");
    }

    #[tokio::test]
    async fn a_payment_is_resolved_by_confirm_or_by_a_search() {
        let test = one_store().await;
        let paid = || confirm_answer("2026-01-15", false, "PAID");
        let update = |body: &str| says("/invoice/update/", 200, body);
        for (answers, resuming, expected) in [
            (vec![paid()], false, "unchanged, confirm"),
            (vec![paid()], true, "confirm"),
            (
                vec![silent(CONFIRM), search_answer("SIGNED")],
                false,
                "unchanged, search",
            ),
            (
                vec![silent(CONFIRM), search_answer("SIGNED")],
                true,
                "search",
            ),
            (vec![silent(CONFIRM), nothing_found()], true, "retryable"),
            (vec![signed_answer()], false, "unknown"),
            (
                vec![signed_answer(), update(r#"{"data":{"ok":true}}"#)],
                true,
                "answer",
            ),
            (vec![signed_answer(), update("{}")], false, "unknown"),
            (
                vec![
                    signed_answer(),
                    says("/invoice/update/", 400, r#"{"message":"no"}"#),
                ],
                false,
                "refused: no",
            ),
        ] {
            let case = format!("{answers:?}");
            let (word, _) = call(
                &test,
                &run(Operation::Payment),
                Step::Payment,
                resuming,
                answers,
            )
            .await;
            assert_eq!(word, expected, "{case}");
        }
    }
}
