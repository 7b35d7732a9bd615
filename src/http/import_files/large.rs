//! A file that is too large for one command. It is cut into pieces, which are stored; a worker imports them, and the
//! caller polls the progress. A preview reads only the first pieces.

use jiff::Timestamp;
use jiff::civil::Date;
use tokio::task::spawn_blocking;

use crate::actors::taxpayer::commands::{ImportInvoices, PlannedInvoices, PreviewImport};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::actors::turn_gate::BudgetPortion;
use crate::domain::import::pieces::{FilePieces, Piece};
use crate::domain::import::record::{Import, import_batch_number};
use crate::domain::import::source::ImportForm;
use crate::domain::import::ubl_parties::ImportAccount;
use crate::domain::kernel::fault::Fault;
use crate::domain::party::Taxpayer;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::extract::body_text::BodyText;
use crate::http::forms::import::{self, ImportContext};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::invoices::import_pieces::{self, ImportKey, NewImport, PieceParseOptions};

/// A preview ends after the piece with which it has read this many documents.
const PREVIEWED_DOCUMENTS_MAX: usize = 10_000;

pub(crate) struct LargeFile {
    pub(super) text: LargeText,
    pub(super) import_no: String,
    pub(super) form: ImportForm,
    pub(super) parse_options: PieceParseOptions,
    pub(super) taxpayer: Taxpayer,
    /// Counts this bulk request as in progress until this value is dropped.
    pub(super) _turn: BudgetPortion,
}

/// The text of a file, the places at which it is cut, and its reserved memory.
pub(super) struct LargeText {
    pub(super) text: String,
    pub(super) cuts: FilePieces,
    /// The warnings about the file as a whole. They belong to no single piece.
    pub(super) warnings: Vec<String>,
    pub(super) _body: BodyText,
}

/// Reads the documents of a piece. The fields are everything besides the piece that affects the result.
pub(super) struct PieceReader {
    pub(super) import_no: String,
    pub(super) form: ImportForm,
    pub(super) parse_options: PieceParseOptions,
    pub(super) account: ImportAccount,
    pub(super) today: Date,
    pub(super) catalog: SharedCatalog,
    /// The number of documents in the earlier pieces of the file.
    pub(super) documents_before: usize,
}

impl PieceReader {
    /// Reads a piece on another thread. Returns the reader too, for the next piece.
    pub(super) async fn read(self, piece: Piece) -> Result<(ImportInvoices, Self), ApiError> {
        let task = spawn_blocking(move || self.to_command(&piece).map(|command| (command, self)));
        Ok(task.await.map_err(ApiError::internal)??)
    }

    fn to_command(&self, piece: &Piece) -> Result<ImportInvoices, Fault> {
        let PieceParseOptions {
            format,
            profile,
            replaces_cancelled,
        } = &self.parse_options;
        let source = piece.read(*format, &profile.columns)?;
        let catalog = self.catalog.get();
        let context = ImportContext {
            form: self.form,
            profile,
            account: &self.account,
            today: self.today,
            catalog: &catalog,
        };
        let (candidates, mut file) = import::read(source, self.import_no.clone(), &context);
        file.documents_before = self.documents_before;
        Ok(ImportInvoices {
            candidates,
            file,
            replaces_cancelled: *replaces_cancelled,
        })
    }
}

impl LargeFile {
    /// Stores the pieces and starts the import. If the same file was sent before, returns its import, and continues the
    /// import if it was stopped.
    pub(crate) async fn store_and_start(
        self,
        store: &Store,
        now: Timestamp,
    ) -> Result<Import, ApiError> {
        let LargeText {
            text,
            cuts,
            warnings,
            _body,
        } = self.text;
        let taxpayer = self.taxpayer.id;
        let key = ImportKey {
            taxpayer,
            import_no: &self.import_no,
        };
        for (number, piece) in cuts.pieces(&text).enumerate() {
            import_pieces::store_piece(store, key, number, piece, now).await?;
        }
        let batch_no = import_batch_number(&self.import_no, now);
        let start = Import::start(
            self.import_no.clone(),
            self.form,
            Some(batch_no),
            cuts.document_count(),
        );
        let import = Import { warnings, ..start };
        let new_import = NewImport {
            import,
            source: self.parse_options,
            pieces: cuts.piece_count(),
        };
        Ok(import_pieces::start_import(store, taxpayer, new_import, now).await?)
    }

    /// Returns the outcome that an import would have for the first documents. Changes nothing. `send` sends the preview
    /// command of each piece.
    pub(crate) async fn preview_import(
        self,
        state: &ApiState,
        send: impl AsyncFn(PreviewImport) -> Result<(Import, PlannedInvoices), TaxpayerError>,
    ) -> Result<Import, ApiError> {
        let LargeText {
            text,
            cuts,
            warnings,
            _body,
        } = self.text;
        let mut import = Import::start(
            self.import_no.clone(),
            self.form,
            None,
            cuts.document_count(),
        );
        import.warnings = warnings;
        let mut planned = PlannedInvoices::default();
        let mut reader = PieceReader {
            import_no: self.import_no,
            form: self.form,
            parse_options: self.parse_options,
            account: ImportAccount::from(&self.taxpayer),
            today: state.latest_day(),
            catalog: state.catalog.clone(),
            documents_before: 0,
        };
        for piece in cuts.pieces(&text) {
            if import.counts.total() >= PREVIEWED_DOCUMENTS_MAX {
                import.warnings.push(format!(
                    "The preview shows the first {} of {} invoices.",
                    import.counts.total(),
                    import.documents
                ));
                break;
            }
            let (invoices, returned_reader) = reader.read(piece).await?;
            let (part, plan) = send(PreviewImport { invoices, planned }).await?;
            planned = plan;
            import.add_piece(part);
            reader = PieceReader {
                documents_before: import.counts.total(),
                ..returned_reader
            };
        }
        Ok(import)
    }
}
