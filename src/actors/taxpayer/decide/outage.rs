//! News of an outage of the authority: told where the enabled events name it, and once.

use crate::actors::taxpayer::command::Reply;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::kernel::ids::CommandId;
use crate::domain::outage::OutageNotice;

pub(super) fn tell(desk: &mut Desk, cause: CommandId, notice: &OutageNotice) -> Reply {
    let (news, kind) = ((notice.outage, notice.edge), notice.edge.event());
    let is_named = desk.books.endpoint.as_ref().is_some_and(|endpoint| endpoint.names(kind));
    if is_named && !desk.told_outages.contains(&news) {
        let sequence = desk.emit(cause, kind, None, notice.data.clone());
        desk.told_outages.push(news);
        desk.changes.told_outages.push((news, sequence));
    }
    Reply::Done
}
